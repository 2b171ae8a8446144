"""``pytest --ascend-emulator``: a racy launch fails its test, with one process and with two."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("tilelang")

# Pytester forgets what a run imports, and packages remember it: import it all beforehand.
import tests.emulator.corpus.vector  # noqa: F401

pytest_plugins = "pytester"
pytestmark = pytest.mark.emu
PLUGIN = "ascendkit.emulator.pytest_plugin"
HEAD = """
import pytest, torch
from ascendkit import emulator
from ascendkit.emulator.findings import examples
from ascendkit.emulator.findings.codes import codes

def launch(code):
    example = codes()[code].example
    text = examples.text(codes()[code])
    emulator.run(text, torch.ones(256), torch.zeros(256), 0, grid=example.blocks)
"""
TESTS = """
def test_race():
    launch("AK-RACE-003")

def test_warning():
    launch("AK-SYNC-015")
"""


@pytest.fixture
def pytests(monkeypatch, request):
    """Runs a file of tests with the plugin."""
    home = os.environ.get("HOME")
    pytester = request.getfixturevalue("pytester")
    if home:  # pytester moves it, and with it the cache of compiled kernels
        monkeypatch.setenv("HOME", home)

    def run(tests, *args):
        pytester.makepyfile(HEAD + tests)
        return pytester.runpytest_inprocess("-p", PLUGIN, "-p", "no:cacheprovider", *args)

    return run


@pytest.fixture
def run(pytests):
    return lambda *args: pytests(TESTS, *args)


def written(pytester):
    """Findings of the JSON file: (where, code, reason) by test."""
    found = json.loads((pytester.path / "found.json").read_text())
    return {
        name.split("::")[1]: {(f["where"], f["code"], f.get("allowed")) for f in entries}
        for name, entries in found.items()
    }


def test_an_error_fails_its_test_and_a_warning_does_not(run, pytester):
    done = run("--ascend-emulator-json=found.json")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["*test: findings of severity error: 1 (*", "*findings of the*", "*AK-RACE-003*"]
    )
    found = json.loads((pytester.path / "found.json").read_text())
    codes = {name.split("::")[1]: {f["code"] for f in fs} for name, fs in found.items()}
    assert codes == {"test_race": {"AK-RACE-003"}, "test_warning": {"AK-SYNC-015"}}


MARKED = """
@pytest.mark.ascend_emulator(findings="allow", codes=["AK-RACE-003"], reason="shows a race")
def test_allowed():
    launch("AK-RACE-003")

@pytest.mark.ascend_emulator(findings="allow", codes=["AK-RACE-001"], reason="another one")
def test_another():
    launch("AK-RACE-003")
"""


def test_a_marker_allows_codes_and_keeps_the_reason(pytests, pytester):
    done = pytests(MARKED, "--ascend-emulator-json=found.json", "--strict-markers")
    done.assert_outcomes(passed=1, failed=1)
    assert written(pytester) == {
        "test_allowed": {("test", "AK-RACE-003", "shows a race")},
        "test_another": {("test", "AK-RACE-003", None)},
    }


@pytest.mark.parametrize(
    "marker, message",
    [
        ('codes=["AK-RACE-003"], reason="x"', 'findings: got None, wanted findings="allow"'),
        ('findings="alow", codes=["AK-RACE-003"], reason="x"', "findings: got 'alow', wanted"),
        ('"allow"', "got 'allow', wanted only findings="),
        ('findings="allow", code="AK-RACE-003"', "got code='AK-RACE-003', wanted only"),
        ('findings="allow", reason="x"', "codes: got None"),
        ('findings="allow", codes=["AK-RACE-003"]', "reason: got None"),
        ('findings="allow", codes=["AK-RACE-3"], reason="x"', "AK-RACE-3"),
    ],
)
def test_a_marker_that_allows_everything_or_says_not_why_fails_its_test(pytests, marker, message):
    tests = f"@pytest.mark.ascend_emulator({marker})\ndef test_one(): pass\n\ndef test_two(): pass"
    done = pytests(tests, "--ascend-emulator")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines([f"*marker ascend_emulator: *{message}*"])


def test_a_wrong_marker_shows_with_what_it_did_not_allow(pytests):
    marker = '@pytest.mark.ascend_emulator(findings="alow")\ndef test_six(racy): pass'
    done = pytests(FIXTURES + marker, "--ascend-emulator", "-k", "six or four")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(
        ["*fixture racy: findings of severity error: 1*", "*findings: got 'alow', wanted*"]
    )


FIXTURES = """
@pytest.fixture(scope="module")
def racy():
    launch("AK-RACE-003")

@pytest.fixture
def late():
    yield
    launch("AK-RACE-003")

def test_one(racy): pass
def test_two(racy): pass
def test_three(late): pass
def test_four(): pass

@pytest.mark.ascend_emulator(findings="allow", codes=["AK-RACE-003"], reason="shows a race")
def test_five(late): pass
"""


def test_launches_of_fixtures_are_judged_and_the_fixture_is_named(pytests, pytester):
    done = pytests(FIXTURES, "--ascend-emulator-json=found.json")
    done.assert_outcomes(passed=3, errors=3)
    done.stdout.fnmatch_lines(["*Ascend emulator: fixture racy: findings of severity error: 1*"])
    done.stdout.fnmatch_lines(["*Ascend emulator: teardown: findings of severity error: 1*"])
    found = written(pytester)
    assert found["test_one"] == {("fixture racy", "AK-RACE-003", None)}
    assert found["test_three"] == {("teardown", "AK-RACE-003", None)}
    assert found["test_five"] == {("teardown", "AK-RACE-003", "shows a race")}


ACROSS = """
from ascendkit.emulator.kernel import EmulatedKernel
from ascendkit.emulator.lowered import LoweredKernel
from tests.emulator.corpus import vector

TEXT = LoweredKernel(vector.sum_over_cores(4)).kernel_source

def sums(text):
    names = [p.name for p in EmulatedKernel(text).kernel.parameters]
    given = {"x": torch.ones(4, 64), "twice": torch.zeros(4, 64), "y": torch.zeros(4, 64)}
    emulator.run(text, *(given[n] for n in names), grid=4)

def test_blocks(): launch("AK-RACE-008")
def test_threads(): launch("AK-RACE-009")
def test_all_cores_meet(): sums(TEXT)
def test_nobody_waits():
    rows = [r for r in TEXT.splitlines() if "asc_sync_inter_wait" not in r]
    sums(chr(10).join(rows))
"""


def test_races_of_blocks_threads_and_barriers_over_all_cores_are_seen(pytests, pytester):
    done = pytests(ACROSS, "--ascend-emulator-json=found.json")
    done.assert_outcomes(passed=1, failed=3)
    codes = {name: {code for _, code, _ in found} for name, found in written(pytester).items()}
    assert "AK-RACE-008" in codes["test_blocks"] and "AK-RACE-009" in codes["test_threads"]
    assert "AK-RACE-008" in codes["test_nobody_waits"]


def test_without_the_option_nothing_is_judged(run):
    run().assert_outcomes(passed=2)


def test_workers_hand_their_findings_over(run, pytester):
    pytest.importorskip("xdist")
    run("-n", "2", "--ascend-emulator-json=found.json").assert_outcomes(passed=1, failed=1)
    assert len(json.loads((pytester.path / "found.json").read_text())) == 2


def test_judges_that_are_turned_off_are_an_error_of_usage(run, monkeypatch):
    monkeypatch.setenv("ASCENDKIT_EMULATOR_CHECK", "0")
    done = run("--ascend-emulator")
    assert done.ret == pytest.ExitCode.USAGE_ERROR


def test_the_plugin_imports_nothing_heavy():
    text = f"import sys, {PLUGIN}; print(*{{'torch', 'tilelang', 'numpy'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
