"""The Makefile: what it would do, what it says when it cannot, and when it installs again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.helpers import ROOT, clean_env

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make on PATH")

STAGES = ["environment", "lint", "test"]


def make(*argv: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *argv], cwd=cwd, env=clean_env(), capture_output=True, text=True)


def test_no_python_is_said_in_one_line(tmp_path: Path) -> None:
    done = make("demo-budget", "PYTHON=", f"VENV={tmp_path}/env")
    assert done.returncode == 2
    assert "no Python >= 3.11" in done.stderr
    assert not (tmp_path / "env").exists()


def test_the_python_it_picks_is_new_enough() -> None:
    done = make("--eval=show: ; @echo $(PYTHON)", "show")
    version = "import sys; print(*sys.version_info[:2])"
    shown = subprocess.run([done.stdout.strip(), "-c", version], capture_output=True, text=True)
    assert tuple(map(int, shown.stdout.split())) >= (3, 11)


def test_the_demo_runs_three_stages_and_the_first_needs_no_torch(tmp_path: Path) -> None:
    plan = make("-n", "demo", f"VENV={tmp_path}/env").stdout
    for text in ("1/3", "2/3", "3/3", "model=v3 phase=train", "op=topk_gate", "ascend_scale.py"):
        assert text in plan
    first = plan.partition("2/3")[0].partition("ascendkit.budget")[0]
    assert "torch==" not in first


@pytest.mark.parametrize("pin", ["pyproject.toml", "constraints.txt", None])
def test_it_installs_again_only_when_a_pin_changed(tmp_path: Path, pin: str | None) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
        os.utime(tmp_path / name, (1_000_000_000, 1_000_000_000))
    venv = tmp_path / ".venv"
    venv.mkdir()
    for age, stamp in enumerate((".base", ".torch", ".emu", ".dev", ".npu", ".peers")):
        (venv / stamp).touch()
        os.utime(venv / stamp, (1_500_000_000 + age, 1_500_000_000 + age))
    if pin:
        (tmp_path / pin).touch()
    plan = make("-n", "environment", cwd=tmp_path).stdout
    assert ("pip install" in plan) == (pin is not None)
    assert plan.count("torch==2.13.0") == (2 if pin else 0), "announced, then installed"


def test_an_index_of_cpu_wheels_reaches_pip_and_the_announcement(tmp_path: Path) -> None:
    plan = make("-n", "demo-check", f"VENV={tmp_path}/env", "TORCH_INDEX=file:///cpu").stdout
    lines = [line for line in plan.splitlines() if "torch==" in line]
    assert len(lines) == 2 and all("--extra-index-url file:///cpu" in line for line in lines)


@pytest.mark.parametrize("broken", [None, "environment", "lint", "test"])
def test_ci_runs_every_stage_and_fails_with_the_broken_one(tmp_path: Path, broken) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    rules = [f"{t}:\n\t@echo ran {t}; {'false' if t == broken else 'true'}\n" for t in STAGES]
    (tmp_path / "Makefile").write_text(".PHONY: environment lint test\n" + "".join(rules))
    done = subprocess.run(
        ["bash", str(tmp_path / ".ci" / "run")],
        cwd="/",
        env=clean_env(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == (1 if broken else 0), done.stderr
    ran = [t for t in STAGES if f"ran {t}" in done.stdout]
    assert ran == (STAGES[:1] if broken == "environment" else STAGES)
