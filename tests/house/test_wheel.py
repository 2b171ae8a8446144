"""A built wheel in an empty environment is the suite: the same budget from any folder."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from ascendkit.registry import components, ops
from tests.house.helpers import ROOT, clean_env, python, tracked

pytest.importorskip("build", reason="needs the build package: pip install -e '.[dev]'")
pytest.importorskip("hatchling", reason="needs hatchling: pip install -e '.[dev]'")

# The wheel is built once, by the worker that gets all of these.
pytestmark = pytest.mark.xdist_group("wheel")

BUDGET = ("-m", "ascendkit.budget", "model=v3", "phase=train", "hardware=h800", "output=json")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout with the installed hatchling (no download)."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=clean_env())
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of a fresh environment that holds the wheel, and its requirements by a path file.

    The path file points at this environment's packages, where an editable install of the checkout
    is not found: path files of a folder that a path file names are not read.
    """
    home = tmp_path_factory.mktemp("env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    interpreter = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, env=clean_env())
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    (site / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter


def run(interpreter: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(interpreter), *argv], cwd="/", capture_output=True, text=True, env=clean_env()
    )


def test_the_wheel_gives_the_budget_of_the_checkout_from_the_root_folder(installed: Path) -> None:
    here, there = python(*BUDGET), run(installed, *BUDGET)
    assert here.returncode == 0, here.stderr
    assert there.returncode == 0, there.stderr
    assert json.loads(there.stdout) == json.loads(here.stdout)


def test_what_runs_is_the_wheel_and_not_the_checkout(installed: Path) -> None:
    done = run(installed, "-c", "import ascendkit; print(ascendkit.__file__)")
    assert done.stdout.startswith(str(installed.parent.parent)), done.stdout + done.stderr


def test_the_wheel_has_the_same_ops_and_components(installed: Path) -> None:
    code = "import ascendkit; print([*ascendkit.ops()], [*ascendkit.components()])"
    assert run(installed, "-c", code).stdout == f"{[*ops()]} {[*components()]}\n"


@pytest.mark.parametrize("command", ["doctor", "status", "env"])
def test_the_small_commands_run_from_the_wheel(installed: Path, command: str) -> None:
    done = run(installed, "-m", "ascendkit", command, "output=json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_the_console_script_is_installed(installed: Path) -> None:
    done = run(installed.parent / "ascendkit", "env", "output=json")
    assert done.returncode == 0, done.stderr


def test_the_wheel_holds_every_file_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = ("ascendkit", *components())
    wanted = {str(p.relative_to(ROOT)) for p in tracked(*packages)}
    wanted |= {f"ascendkit/{p.relative_to(ROOT)}" for p in tracked("configs", "constraints.txt")}
    info = {n for n in names if ".dist-info/" in n}
    assert not wanted - names, "missing from the wheel"
    assert not names - wanted - info, "not part of the suite"
    assert "ascendkit/py.typed" in names
