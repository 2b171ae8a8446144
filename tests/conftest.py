"""Shared fixtures: a fresh seed printed on failure, and the time ledger."""

from __future__ import annotations

import json
import os
import random
import secrets
from collections import defaultdict
from pathlib import Path

import pytest

LEDGER_LIMIT_S = 22 * 60
"""CPU-seconds the whole suite may take on two cores, summed over workers and halved."""

_seconds: dict[str, float] = defaultdict(float)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A fresh seed; set ASCENDKIT_SEED to repeat a failure."""
    value = int(os.environ.get("ASCENDKIT_SEED") or secrets.randbits(31))
    random.seed(value)
    request.node.user_properties.append(("ASCENDKIT_SEED", value))
    return value


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for name, value in item.user_properties:
            if name == "ASCENDKIT_SEED":
                report.sections.append(("seed", f"repeat with ASCENDKIT_SEED={value}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Book the time of a test under its folder: tests/topk_gate/... -> topk_gate."""
    parts = Path(report.nodeid.split("::")[0]).parts
    component = parts[1] if len(parts) > 2 else "house"
    _seconds[component] += report.duration


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workerinput"):
        return
    total = sum(_seconds.values())
    workers = int(
        os.environ.get("PYTEST_XDIST_WORKER_COUNT")
        or session.config.getoption("numprocesses", 1)
        or 1
    )
    wall = total / max(workers, 1)
    ledger = {"wall_s": round(wall, 1), "limit_s": LEDGER_LIMIT_S, "components": {}}
    ledger["components"] = {k: round(v, 1) for k, v in sorted(_seconds.items())}
    Path(session.config.rootpath, ".ledger.json").write_text(json.dumps(ledger, indent=1) + "\n")
    if wall > LEDGER_LIMIT_S and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter) -> None:
    total = sum(_seconds.values())
    terminalreporter.section("time ledger (seconds of test time by component)")
    for name, seconds in sorted(_seconds.items(), key=lambda kv: -kv[1]):
        terminalreporter.line(f"{seconds:8.1f}  {name}")
    terminalreporter.line(f"{total:8.1f}  total; limit {LEDGER_LIMIT_S} s of wall time")
