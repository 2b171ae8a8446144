"""Probes of the machine answer on any machine: no CANN, no driver, a broken driver, no compiler."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ascendkit import backends, cann
from ascendkit.doctor import machine
from ascendkit.doctor.show import Table, markdown
from ascendkit.platform import BACKENDS


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH and nothing the loader knows; returns its only folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    monkeypatch.setattr(cann, "_CACHE", tmp_path / "ld.so.cache")
    return tmp_path


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)


def test_cann_is_found_on_the_path_of_the_loader_or_in_its_cache(bare: Path, monkeypatch) -> None:
    assert not cann.found()
    (bare / "ld.so.cache").write_bytes(b"\0libhccl.so\0/usr/lib/libhccl.so\0")
    assert cann.found()
    (bare / "ld.so.cache").write_bytes(b"\0libc.so.6\0")
    assert not cann.found()
    (bare / cann.LIBRARY).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join(("", "/nowhere", str(bare))))
    assert cann.found()


def test_a_bare_machine_is_described_without_an_error(bare: Path) -> None:
    found = dict(machine.facts())
    assert found["C++ compiler"] == found["CUDA compiler"] == "not found"
    assert found["CANN libraries"].startswith("not found")


def test_a_driver_that_answers_is_read_and_a_broken_one_is_not(bare: Path) -> None:
    program(bare, "nvidia-smi", "print('NVIDIA H200, 9.0\\nNVIDIA B200, 10.0')")
    rows = [row for row in machine.devices() if row[0] == "cuda"]
    assert rows == [("cuda", "NVIDIA H200", "sm_90"), ("cuda", "NVIDIA B200", "sm_100")]
    program(bare, "nvidia-smi", "print('Failed to initialize NVML'); raise SystemExit(9)")
    assert not [row for row in machine.devices() if row[0] == "cuda"]
    program(bare, "nvidia-smi", "print('[Not Supported]')")
    assert not [row for row in machine.devices() if row[0] == "cuda"]


def test_a_compiler_that_fails_is_named_all_the_same(bare: Path) -> None:
    program(bare, "g++", "raise SystemExit(1)")
    assert dict(machine.facts())["C++ compiler"] == f"no version ({bare / 'g++'})"


def test_every_backend_answers_and_a_typo_names_the_nearest() -> None:
    for name in BACKENDS:
        state = backends.backend_available(name)
        assert bool(state) == (state.reason == ""), name
    with pytest.raises(ValueError, match=r"backend: got 'ncll', .*nearest: nccl"):
        backends.backend_available("ncll")


def test_mpi_without_a_launcher_says_so(bare: Path, monkeypatch) -> None:
    pytest.importorskip("mpi4py", reason="needs mpi4py: pip install -e '.[mpi]'")
    monkeypatch.setattr(sys, "executable", str(bare / "python"))
    assert "no mpiexec" in backends.backend_available("mpi").reason


def test_a_cell_cannot_break_a_markdown_table() -> None:
    text = markdown([Table("A b", ("x", "y"), [("1|2", "3")], ("a note",))])
    assert text == "## A b\n\n| x | y |\n| --- | --- |\n| 1\\|2 | 3 |\n\n- a note\n"


def test_a_row_of_the_wrong_length_is_an_error() -> None:
    with pytest.raises(ValueError):
        Table("t", ("x", "y"), [("only one",)]).records()
