"""``python -m ascendkit.emulator.zero_findings LEVEL [OP ...]``: what the judges say of right
kernels, one record an op with an Ascend program: cases, launches, suspects, findings by code."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ascendkit import registry
from ascendkit.bench.environment import commit
from ascendkit.check.correctness import check_case
from ascendkit.emulator.judged import judged
from ascendkit.op import Op


def record(op: Op, level: str, seed: int) -> dict[str, Any]:
    """All cases of ``op`` up to ``level``, checked on the emulator."""
    start = time.perf_counter()
    with judged() as kept:
        cases = Counter(check_case(op, "emulator", c, seed).status for c in op.cases(level))
    severities = Counter(f.severity for f in kept.findings)
    return {
        "record": "zero_findings",
        "op": op.name,
        "level": level,
        "seed": seed,
        "cases": dict(cases),
        "launches": kept.launches,
        "suspects": kept.suspects,
        "findings": dict(Counter(f.code for f in kept.findings)),
        "errors": severities["error"],
        "seconds": round(time.perf_counter() - start, 1),
    }


def main(argv: Sequence[str]) -> int:
    """Print the records; 1 if there is a finding of severity error or a case failed."""
    level, *names = argv or ["smoke"]
    ops = [o for o in registry.ops().values() if o.has("ascend") and (not names or o.name in names)]
    command = shlex.join(["python", "-m", "ascendkit.emulator.zero_findings", *argv])
    bad = False
    for op in ops:
        one = {**record(op, level, seed=1), "command": command, "commit": commit()}
        bad |= bool(one["errors"] or one["cases"].get("fail"))
        print(json.dumps(one), flush=True)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
