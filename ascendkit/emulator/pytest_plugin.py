"""``pytest --ascend-emulator``: launches on the emulator inside tests and fixtures are judged.

A test whose launches give a finding of severity error fails, and prints it; if they belong to a
fixture, the test is an error that names the fixture. ``check()`` inside a test counts as well when
it runs a TileLang function. Launches of threads that a test starts are not judged. Without the
options nothing is imported but this file and ``pytest_marker``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ascendkit.emulator import pytest_marker

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
    """Take part only when asked to; the marker is known always."""
    config.addinivalue_line("markers", pytest_marker.HELP)
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
        self._item: pytest.Item | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._item = item

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        try:
            with self._judged(request.node, "setup", f"fixture {fixturedef.argname}"):
                return (yield)
        except pytest.fail.Exception as error:
            if fixturedef.cached_result is not None:  # later tests that use it are errors too
                key = fixturedef.cached_result[1]
                fixturedef.cached_result = (None, key, (error, error.__traceback__))
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        if wrong := pytest_marker.read(item)[1]:
            pytest.fail("\n".join(wrong), pytrace=False)
        with self._judged(item, "call", "test"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._judged(item, "teardown", "teardown"):
            return (yield)

    @contextmanager
    def _judged(self, node: Any, when: str, where: str) -> Iterator[None]:
        """Judge the launches inside; findings of severity error that no marker of ``node`` allows
        are a failure, whatever else happened."""
        from ascendkit.emulator.judged import judged

        kept = None
        try:
            with judged() as kept:
                yield
        finally:
            findings = list(dict.fromkeys(kept.findings)) if kept else []
            allowed, _ = pytest_marker.read(node)
            for f in findings:
                entry = {**f.to_json(), "where": where}
                if f.code in allowed:
                    entry["allowed"] = allowed[f.code]
                self._now.append(entry)
            text = "\n\n".join(map(str, findings))
            if text and self._item is not None:
                self._item.add_report_section(when, SECTION, text)
        errors = [f.code for f in findings if f.severity == "error" and f.code not in allowed]
        if errors:
            codes = ", ".join(dict.fromkeys(errors))
            text = f"findings of severity error: {len(errors)} ({codes})"
            wrong = pytest_marker.read(self._item)[1] if self._item is not None else []
            lines = [f"Ascend emulator: {where}: {text}", *wrong]
            pytest.fail("\n".join(lines), pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if self._now:
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
