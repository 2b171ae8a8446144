"""A command judges the program that its user runs, and says in one line why it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("tilelang")

import torch

import ascendkit
from ascendkit.emulator import check
from ascendkit.emulator.__main__ import main
from ascendkit.emulator.findings import loading
from ascendkit.emulator.lowered import LoweredKernel

pytestmark = pytest.mark.emu
KERNEL = """
import tilelang
from tilelang.ascend import language as T
from tilelang.ascend.language import simd

@tilelang.jit(target="ascend", pass_configs={"tl.enable_auto_schedule": False})
def scale(rows, cores):
    @T.prim_func
    def kernel(x: T.Tensor[(rows, 64), T.float32], y: T.Tensor[(rows, 64), T.float32]):
        with T.Kernel(cores) as core:
            tile = T.alloc_shared((64,), T.float32)
            doubled = T.alloc_shared((64,), T.float32)
            for i in T.serial(rows // cores):
                T.copy(x[core * (rows // cores) + i, 0:64], tile)
                with T.SimdVF():
                    value = simd.vld(tile[0])
                    simd.vsts(doubled[0], simd.vadd(value, value))
                T.copy(doubled, y[core * (rows // cores) + i, 0:64])
    return kernel

@tilelang.jit(target="ascend", pass_configs={"tl.enable_auto_schedule": False})
def flags(wait=True):
    @T.prim_func
    def kernel(x: T.Tensor[(4, 64), T.float32], y: T.Tensor[(4, 64), T.float32]):
        with T.Kernel(4) as core:
            tile = T.alloc_shared((64,), T.float32)
            T.copy(x[core, 0:64], tile)
            T.ascend_set_flag("MTE2_MTE3", 0)
            if wait:
                T.ascend_wait_flag("MTE2_MTE3", 0)
            T.copy(tile, y[core, 0:64])
    return kernel
"""
SETTINGS = ("rows=4", "cores=2")
ARGS = ("--arg", "x=float32[4,64]=randn", "--arg", "y=float32[4,64]=zeros")
COMMANDS = ("check", "advise", "replay", "mutate", "source", "lint", "fits")
LAUNCHED = ("check", "advise", "replay", "mutate")


@pytest.fixture(scope="module")
def unordered(tmp_path_factory):
    """``file.py:function`` of a kernel that has its own schedule, without an event in it."""
    path = tmp_path_factory.mktemp("kernels") / "unordered_scale.py"
    path.write_text(KERNEL)
    return f"{path}:scale"


def call(command, subject, *settings):
    return main([command, subject, *settings, *(ARGS if command in LAUNCHED else ())])


def told(capsys):
    """The one line of an error."""
    said = capsys.readouterr()
    assert said.err.count("\n") == 1, said.err
    return said.err


def test_pass_options_of_the_function_are_those_of_every_command(unordered, capsys):
    assert call("check", unordered, *SETTINGS, "output=json") == 1
    codes = {f["code"] for f in json.loads(capsys.readouterr().out)}
    factory = loading.factory_of(unordered)
    x, y = torch.randn(4, 64), torch.zeros(4, 64)
    with ascendkit.use("emulator", check=True), pytest.warns(Warning) as warned:
        factory(4, 2)(x, y)
    assert {"AK-RACE-001", "AK-RACE-002"} <= codes
    assert all(any(code in str(w.message) for w in warned) for code in codes)
    assert call("source", unordered, *SETTINGS) == 0
    assert "asc_sync" not in capsys.readouterr().out
    assert call("replay", unordered, *SETTINGS) == 1
    assert call("advise", unordered, *SETTINGS) == call("mutate", unordered, *SETTINGS) == 2
    assert "AK-RACE-001" in capsys.readouterr().err


def test_flags_of_a_function_without_a_schedule_are_all_there_are(unordered, capsys):
    subject = unordered.replace(":scale", ":flags")
    assert call("check", subject) == 0
    assert "no findings" in capsys.readouterr().out
    assert call("lint", subject, "wait=False", "output=json") == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert main(["source", subject, "wait=False"]) == 0
    rows = capsys.readouterr().out.splitlines()
    lines = [i for i, row in enumerate(rows, 1) if "asc_sync_notify(" in row]
    assert found["code"] == "AK-LINT-001" and [found["here"]["line"]] == lines


def test_pass_options_in_the_body_of_a_function_count_too(unordered, tmp_path):
    path = tmp_path / "annotated_scale.py"
    text = KERNEL.replace('(target="ascend", pass_configs={"tl.enable_auto_schedule": False})', "")
    row = (
        "    def kernel(x: T.Tensor[(rows, 64), T.float32], y: T.Tensor[(rows, 64), T.float32]):\n"
    )
    note = '        T.annotate_pass_configs({"tl.enable_auto_schedule": False})\n'
    path.write_text(
        text.replace(row, row + note).replace("@tilelang.jit", "@tilelang.jit(target='ascend')")
    )
    function, configs = loading.load(f"{path}:scale", {"rows": 4, "cores": 2})
    assert not configs
    assert not check(function, torch.randn(4, 64), torch.zeros(4, 64)).ok
    assert call("check", f"{path}:scale", *SETTINGS) == 1


def test_what_tilelang_refuses_is_one_line(tmp_path, capsys):
    path = tmp_path / "large_scale.py"
    path.write_text(KERNEL.replace("T.alloc_shared((64,)", "T.alloc_shared((64000,)"))
    for command in ("check", "source"):
        assert call(command, f"{path}:scale", *SETTINGS) == 2
        assert "cannot judge: InternalError: " in told(capsys)


def test_the_guide_shows_what_its_example_prints():
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "examples/ascend_missing_wait.py"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    shown = done.stdout[done.stdout.index("AK-RACE-001 error") :]
    for page in ("findings.md", "findings.zh.md"):
        assert f"```\n{shown}```" in (root / "docs" / page).read_text(encoding="utf-8"), shown


def test_pass_options_through_python(unordered):
    factory = loading.factory_of(unordered)
    x, y = torch.randn(4, 64), torch.zeros(4, 64)
    function, configs = loading.load(unordered, {"rows": 4, "cores": 2})
    assert configs == factory.pass_configs
    assert not check(function, x, y, pass_configs=configs).ok
    assert check(function, x, y).ok  # TileLang orders it
    with pytest.raises(TypeError, match=r'got JITImpl.*use\("emulator".*fn\.pass_configs'):
        check(factory, x, y)
    with pytest.raises(ValueError, match=r"pass_configs: got .*wanted none"):
        check(LoweredKernel(function), x, y, pass_configs=configs)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_users_file_raises_is_no_finding(unordered, tmp_path, capsys, command):
    assert call(command, unordered, "rows=4", "cores=0") == 2
    assert "unordered_scale.py:" in (said := told(capsys)) and "ZeroDivisionError" in said
    path = tmp_path / f"broken_for_{command}.py"
    path.write_text("import os\ndef scale(:\n")
    assert call(command, f"{path}:scale") == 2
    assert f"{path}:2: SyntaxError" in told(capsys)
    path = tmp_path / f"stops_for_{command}.py"
    path.write_text("raise SystemExit(0)\n")
    assert call(command, f"{path}:scale") == 2
    assert f"{path}:1: SystemExit: 0" in told(capsys)


@pytest.mark.parametrize("command", LAUNCHED)
def test_no_block_is_no_verdict(unordered, tmp_path, capsys, command):
    assert main(["source", unordered, *SETTINGS]) == 0
    path = tmp_path / "kernel.asc"
    path.write_text(capsys.readouterr().out)
    assert main([command, str(path), "--grid", "0", *ARGS]) == 2
    assert "cannot judge: no block ran" in told(capsys)
    assert check(path, torch.ones(4, 64), torch.ones(4, 64), grid=0).ok


def test_a_file_that_is_not_there(capsys):
    for command in COMMANDS:
        assert call(command, "missing.py:scale") == 2
        assert "got 'missing.py', wanted an existing file" in told(capsys)
        if command != "source":
            assert call(command, "nofile.asc") == 2
            assert "got 'nofile.asc', wanted an existing file" in told(capsys)
    assert main(["run", "nofile.asc", "--grid", "1"]) == 2
    assert "got 'nofile.asc', wanted an existing file" in told(capsys)


def test_commands_that_take_one_kind_of_kernel_say_which(capsys):
    assert main(["source", "scale.asc"]) == 2
    assert "source: got 'scale.asc', wanted module:function" in told(capsys)
    with pytest.raises(SystemExit) as stop:
        main(["run", "examples.ascend_scale:scale", "rows=64"])
    assert stop.value.code == 2
    assert "run takes a .asc file" in (said := capsys.readouterr().err) and "check" in said
