"""The time ledger books every test once, with and without workers, and can fail a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.helpers import ROOT, clean_env

SLEEPY = """
import time
import pytest

@pytest.mark.parametrize("i", range(4))
def test_a(i):
    time.sleep(0.1)
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of two folders of four tests, 0.1 s each, under this project's conftest."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    for folder in ("alpha", "beta"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / f"test_{folder}.py").write_text(SLEEPY)
    return tmp_path


def run(suite: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    # Left in, the outer run's worker number would make the inner run think that it is a worker.
    env = {k: v for k, v in clean_env().items() if not k.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *argv],
        cwd=suite,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("workers", [(), ("-n", "2"), ("-n", "0")])
def test_every_test_is_booked_once_whatever_the_workers(suite: Path, workers) -> None:
    done = run(suite, *workers)
    assert done.returncode == 0, done.stdout
    ledger = json.loads((suite / ".ledger.json").read_text())
    assert set(ledger["components"]) == {"alpha", "beta"}
    # Four sleeps of 0.1 s a folder: booked twice they would come to 0.8 s.
    for seconds in ledger["components"].values():
        assert 0.4 <= seconds < 0.8
    assert ledger["wall_s"] == pytest.approx(sum(ledger["components"].values()) / 2, abs=0.1)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_suite_over_the_limit_fails(suite: Path, workers) -> None:
    done = run(suite, *workers, "-o", "ledger_limit_s=0.2")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "8 passed" in done.stdout
    assert "LEDGER EXCEEDED" in done.stdout


def test_a_failure_keeps_its_own_exit_code_and_prints_the_seed(suite: Path) -> None:
    text = "def test_b(seed): assert seed < 0\n"
    (suite / "tests" / "alpha" / "test_seed.py").write_text(text)
    done = run(suite, "-n", "2")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "repeat with ASCENDKIT_SEED=" in done.stdout
    env = os.environ | {"ASCENDKIT_SEED": "12345"}
    again = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "test_b"],
        cwd=suite,
        env={k: v for k, v in env.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
    )
    assert "repeat with ASCENDKIT_SEED=12345" in again.stdout


def test_no_tests_is_not_a_pass(suite: Path) -> None:
    assert run(suite, "-k", "nothing").returncode == pytest.ExitCode.NO_TESTS_COLLECTED
