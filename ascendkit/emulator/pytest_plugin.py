"""``pytest --ascend-emulator``: launches on the emulator inside tests are judged.

A test whose launches give a finding of severity error fails, and prints it. ``check()`` inside a
test counts as well when it runs a TileLang function. Launches of fixtures and of threads that the
test starts are not judged. Without the options nothing is imported but this file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

SECTION = "findings of the Ascend emulator"
_ATTRIBUTE = "ascend_emulator_findings"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two options."""
    group = parser.getgroup("ascend-emulator", "Ascend 950 emulator")
    group.addoption(
        "--ascend-emulator",
        action="store_true",
        help="judge launches on the emulator; findings of severity error fail the test",
    )
    group.addoption(
        "--ascend-emulator-json",
        metavar="FILE",
        help="write all findings to FILE, by test; implies --ascend-emulator",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Take part only when asked to."""
    path = config.getoption("--ascend-emulator-json")
    if not (path or config.getoption("--ascend-emulator")):
        return
    if os.environ.get("ASCENDKIT_EMULATOR_CHECK") == "0":
        raise pytest.UsageError(
            "--ascend-emulator: ASCENDKIT_EMULATOR_CHECK=0 turns the judges off"
        )
    worker = hasattr(config, "workerinput")  # of xdist; its reports reach the controller
    config.pluginmanager.register(_Judge(None if worker or not path else Path(path)))


class _Judge:
    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[str, list[dict[str, Any]]] = {}
        self._now: list[dict[str, Any]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        from ascendkit.emulator.judged import judged

        result, kept = None, None
        try:
            with judged() as kept:
                result = yield
        finally:
            findings = list(dict.fromkeys(kept.findings)) if kept else []
            self._now = [f.to_json() for f in findings]
            text = "\n\n".join(map(str, findings))
            if text:
                item.add_report_section("call", SECTION, text)
        errors = sum(f.severity == "error" for f in findings)
        if errors:
            pytest.fail(f"Ascend emulator: findings of severity error: {errors}", pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call" and self._now:
            setattr(report, _ATTRIBUTE, self._now)  # plain containers: xdist passes them on
            self._now = []
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, _ATTRIBUTE, None)
        if found:
            self._found.setdefault(report.nodeid, []).extend(found)

    def pytest_sessionfinish(self) -> None:
        if self._path is not None:
            self._path.write_text(json.dumps(self._found, indent=1) + "\n", encoding="utf-8")
