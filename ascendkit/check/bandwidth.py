"""How far a case of an op is from the machine's limit."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ascendkit.bench import Ceilings, Record, measure
from ascendkit.check.correctness import public
from ascendkit.check.outcome import describe
from ascendkit.op import Case, Op
from ascendkit.testing.draw import sub_seed


@dataclass(frozen=True)
class Measured:
    """A record, or why there is none."""

    op: str
    platform: str
    case: str
    record: Record | None = None
    message: str = ""
    skipped: bool = False

    def to_json(self) -> str:
        """One line; the record's own fields where it was measured."""
        if self.record is not None:
            return json.dumps({"record": "bench", **json.loads(self.record.to_json())})
        head = {"op": self.op, "platform": self.platform, "case": self.case}
        status = "skip" if self.skipped else "fail"
        return json.dumps({"record": "bench", **head, "status": status, "message": self.message})


def measure_case(op: Op, platform: str, case: Case, seed: int, ceilings: Ceilings) -> Measured:
    """Time one case; whatever the op raises becomes a message."""
    try:
        support = op.supports(platform, case)
        if not support:
            return Measured(op.name, platform, case.name, None, support.reason, True)
        args = op.inputs(case, sub_seed(seed, op.name, case.name))
        record = measure(op, case, args, public(op, case), platform, ceilings)
    except (Exception, SystemExit) as e:
        return Measured(op.name, platform, case.name, None, describe(e))
    return Measured(op.name, platform, case.name, record)
