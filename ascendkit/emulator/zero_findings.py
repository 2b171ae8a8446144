"""``python -m ascendkit.emulator.zero_findings LEVEL [OP ...]``: what the judges say of right
kernels, one record an op with an Ascend program: cases, launches, suspects, findings by code.
``peer`` for LEVEL runs the tests of tile-kernels' moe/ and quant/ kernels instead, from a checkout.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from importlib.metadata import version
from typing import Any

from ascendkit import registry
from ascendkit.bench.environment import commit
from ascendkit.check.correctness import check_case
from ascendkit.emulator.judged import Kept, judged
from ascendkit.op import Op

PEER_TESTS = "tests/emulator/test_tile_kernels.py"


def record(op: Op, level: str, seed: int) -> dict[str, Any]:
    """All cases of ``op`` up to ``level``, checked on the emulator."""
    start = time.perf_counter()
    with judged() as kept:
        cases = Counter(check_case(op, "emulator", c, seed).status for c in op.cases(level))
    return {
        "record": "zero_findings",
        "op": op.name,
        "level": level,
        "seed": seed,
        "cases": dict(cases),
        **_said(kept),
        "seconds": round(time.perf_counter() - start, 1),
    }


def _said(kept: Kept) -> dict[str, Any]:
    return {
        "launches": kept.launches,
        "suspects": kept.suspects,
        "findings": dict(Counter(f.code for f in kept.findings)),
        "errors": sum(f.severity == "error" for f in kept.findings),
    }


def peer() -> dict[str, Any]:
    """tile-kernels' own kernels, by the tests that compare them with its torch references."""
    import pytest

    cases: Counter[str] = Counter()
    words = {"passed": "pass", "failed": "fail", "skipped": "skip"}

    class Outcomes:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.when == "call" or report.outcome != "passed":
                cases[words[report.outcome]] += 1

    start = time.perf_counter()
    with judged() as kept:
        options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--no-summary"]
        pytest.main([PEER_TESTS, *options], plugins=[Outcomes()])
    return {
        "record": "zero_findings_peer",
        "package": f"tile-kernels {version('tile-kernels')}",
        "cases": dict(cases),
        **_said(kept),
        "seconds": round(time.perf_counter() - start, 1),
    }


def main(argv: Sequence[str]) -> int:
    """Print the records; 1 if there is a finding of severity error or a case failed."""
    level, *names = argv or ["smoke"]
    ops = [o for o in registry.ops().values() if o.has("ascend") and (not names or o.name in names)]
    command = shlex.join(["python", "-m", "ascendkit.emulator.zero_findings", *argv])
    bad = False
    found: Iterable[dict[str, Any]] = (record(op, level, seed=1) for op in ops)
    if level == "peer":
        with redirect_stdout(sys.stderr):
            found = [peer()]
    for one in found:
        one |= {"command": command, "commit": commit()}
        bad |= bool(one["errors"] or one["cases"].get("fail"))
        print(json.dumps(one), flush=True)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
