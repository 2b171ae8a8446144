"""``pytest --ascend-emulator``: a racy launch fails its test, with one process and with two."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("tilelang")
pytest_plugins = "pytester"
pytestmark = pytest.mark.emu
PLUGIN = "ascendkit.emulator.pytest_plugin"
TESTS = """
import torch
from ascendkit import emulator
from ascendkit.emulator.findings import examples
from ascendkit.emulator.findings.codes import codes

def launch(code):
    text = examples.text(codes()[code])
    emulator.run(text, torch.ones(256), torch.zeros(256), 0, grid=1)

def test_race():
    launch("AK-RACE-003")

def test_warning():
    launch("AK-SYNC-015")
"""


@pytest.fixture
def run(monkeypatch, request):
    home = os.environ.get("HOME")
    pytester = request.getfixturevalue("pytester")
    if home:  # pytester moves it, and with it the cache of compiled kernels
        monkeypatch.setenv("HOME", home)
    pytester.makepyfile(TESTS)
    return lambda *args: pytester.runpytest_inprocess("-p", PLUGIN, "-p", "no:cacheprovider", *args)


def test_an_error_fails_its_test_and_a_warning_does_not(run, pytester):
    done = run("--ascend-emulator-json=found.json")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*severity error: 1", "*findings of the*", "*AK-RACE-003*"])
    found = json.loads((pytester.path / "found.json").read_text())
    codes = {name.split("::")[1]: {f["code"] for f in fs} for name, fs in found.items()}
    assert codes == {"test_race": {"AK-RACE-003"}, "test_warning": {"AK-SYNC-015"}}


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
