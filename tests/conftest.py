"""Shared fixtures: a fresh seed printed on failure, and the time ledger."""

from __future__ import annotations

import json
import os
import random
import secrets
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

# An example may take as long as a busy machine makes it.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

LEDGER_LIMIT_S = 22 * 60
"""Seconds the suite may take on :data:`LEDGER_CORES` cores; ``-o ledger_limit_s=`` changes it."""
LEDGER_CORES = 2

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("ledger_limit_s", "seconds the suite may take on two cores", default="")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Book the time of a test under its folder: tests/topk_gate/... -> topk_gate."""
    parts = Path(report.nodeid.split("::")[0]).parts
    component = parts[1] if len(parts) > 2 else "house"
    _seconds[component] += report.duration


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    # A worker of xdist sees its own tests only; the controller gets every report.
    if hasattr(session.config, "workerinput"):
        return
    spent, limit = _spent(), _limit(session.config)
    ledger = {
        "wall_s": round(spent, 1),
        "cores": LEDGER_CORES,
        "limit_s": limit,
        "components": {k: round(v, 1) for k, v in sorted(_seconds.items())},
    }
    Path(session.config.rootpath, ".ledger.json").write_text(json.dumps(ledger, indent=1) + "\n")
    if spent > limit and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("time ledger (seconds of test time by component)")
    for name, seconds in sorted(_seconds.items(), key=lambda kv: -kv[1]):
        terminalreporter.line(f"{seconds:8.1f}  {name}")
    spent, limit = _spent(), _limit(terminalreporter.config)
    terminalreporter.line(f"{spent:8.1f}  on {LEDGER_CORES} cores; limit {limit:g}")
    if spent > limit:
        terminalreporter.line(f"LEDGER EXCEEDED by {spent - limit:.1f} s: the run fails", red=True)


def _spent() -> float:
    """Test time on the cores the limit is stated for, however many workers took part."""
    return sum(_seconds.values()) / LEDGER_CORES


def _limit(config: pytest.Config) -> float:
    return float(config.getini("ledger_limit_s") or LEDGER_LIMIT_S)
