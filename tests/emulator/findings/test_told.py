"""Findings reach somebody on every way in, and what would check nothing is refused."""

from __future__ import annotations

import warnings

import pytest
import torch

import ascendkit
from ascendkit import emulator
from ascendkit.emulator.__main__ import main
from ascendkit.emulator.judged import FindingsWarning, judged
from tests.emulator.kernels import memory
from tests.emulator.test_races import GOOD, IN, OUT, STORE, TWICE, body

pytestmark = pytest.mark.emu

RACY = body(IN, TWICE, STORE, OUT)
"""The wait for the load is missing."""
CHECK = "ASCENDKIT_EMULATOR_CHECK"


def test_a_source_under_the_variable_warns(monkeypatch):
    monkeypatch.setenv(CHECK, "1")
    with pytest.warns(FindingsWarning, match="AK-RACE-001"):
        emulator.run(RACY, torch.zeros(64), grid=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        emulator.run(GOOD, torch.zeros(64), grid=1)


def test_a_tilelang_function_in_a_checked_block_warns():
    # Rows of 48 that nobody fills up reach the output.
    kernel = memory.padded_tile(60, 60, 64, -99, filled=False)
    x, y = torch.zeros(60, 60, dtype=torch.int32), torch.zeros(64, 64, dtype=torch.int32)
    with ascendkit.use("emulator", check=True), pytest.warns(FindingsWarning, match="AK-UNINIT"):
        emulator.lowered.LoweredKernel(kernel)(x, y)


def test_who_takes_the_findings_is_not_warned(monkeypatch):
    monkeypatch.setenv(CHECK, "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with judged() as kept:
            emulator.run(RACY, torch.zeros(64), grid=1)
        assert "AK-RACE-001" in {f.code for f in kept.findings}
        assert emulator.run(RACY, torch.zeros(64), grid=1, check=True).findings
        assert not emulator.check(RACY, torch.zeros(64), grid=1).ok


def test_run_on_a_command_line_prints_them(monkeypatch, tmp_path, capsys):
    path = tmp_path / "racy.asc"
    path.write_text(RACY)
    argv = ["run", str(path), "--grid", "1", "--arg", "x=float32[64]=zeros"]
    assert main(argv) == 0
    monkeypatch.setenv(CHECK, "1")
    assert main(argv) == 1
    assert "AK-RACE-001" in capsys.readouterr().out


def test_settings_may_stand_after_the_options(tmp_path, capsys):
    path = tmp_path / "racy.asc"
    path.write_text(RACY)
    argv = ["check", str(path), "--grid", "1", "--arg", "x=float32[64]=zeros"]
    assert main([*argv, "output=json"]) == 1
    assert capsys.readouterr().out.lstrip().startswith("[")
    with pytest.raises(SystemExit):
        main([*argv, "stray"])
    with pytest.raises(SystemExit):
        main(["names", "output=json"])


def test_a_kernel_that_does_not_compile_is_not_ok(tmp_path):
    result = emulator.check(
        GOOD.replace("asc_init();", "asc_init(); junk junk;"), torch.zeros(64), grid=1
    )
    assert not result.ok and result.run is None
    with pytest.raises(emulator.findings.checking.FindingsError):
        result.raise_on_findings()


def test_what_checks_nothing_is_refused():
    with pytest.raises(ValueError, match="replays: got -1"):
        emulator.check(RACY, torch.zeros(64), grid=1, replays=-1)
    x = torch.zeros(2, 64)
    for call in (emulator.check, emulator.run):
        with pytest.raises(ValueError, match="grid: got -1"):
            call(memory.column(2), x[:, :1].contiguous(), x, grid=-1)


def test_a_number_is_no_tensor_on_a_command_line(tmp_path, capsys):
    path = tmp_path / "good.asc"
    path.write_text(GOOD)
    assert main(["check", str(path), "--grid", "1", "--arg", "x=3"]) == 2
    assert "argument x: got 3, wanted a tensor" in capsys.readouterr().err
