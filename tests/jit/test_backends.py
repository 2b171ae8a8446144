"""The interface carries device-like backends: toolkits, two programs, checks, packed launches."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

import pytest

from ascendkit.jit import CompileError, LaunchError, LoadError, Runtime, ToolkitError

from .conftest import Make, entries, leftovers
from .device_backend import DeviceBackend, DeviceLaunchOptions, DeviceOptions, FakeTools

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")

SOURCE = "__kernel__ add body"


@pytest.fixture
def tools(home: Path) -> FakeTools:
    return FakeTools(home / "dev tools")


@pytest.fixture
def device(make: Make, tools: FakeTools):
    def build(**environ: str) -> Runtime:
        environ.setdefault("DEVICE_HOME", str(tools.folder))
        return make(backend=DeviceBackend(), environ=environ)

    return build


def test_compile_load_launch(device, tools: FakeTools) -> None:
    runtime = device()
    kernel = runtime.compile("add", SOURCE)
    assert (kernel.entry, runtime.device) == ("add", "device dav9")
    assert tools.runs == ["devcc", "devld"]
    options = DeviceLaunchOptions(grid=2, block=32)
    runtime.launch(kernel, options, ctypes.c_int8(1), ctypes.c_float(2), 3)
    name, given, packed = runtime.backend.launched[0]
    assert (name, given.smem, packed) == ("add", 0, struct.pack("<b3xfq", 1, 2.0, 3))
    with pytest.raises(ValueError, match=r"block must be specified"):
        runtime.launch(kernel, DeviceLaunchOptions(grid=1))
    with pytest.raises(LaunchError, match=r"launched, not called"):
        kernel(1)
    assert device().compile("add", SOURCE).path == kernel.path
    assert tools.runs == ["devcc", "devld"]
    module = kernel.module
    kernel.unload()
    assert module.closed


def test_toolkit_discovery(device, home: Path, tools: FakeTools) -> None:
    other = FakeTools(home / "other", "release 13.0")
    on_path = FakeTools(home / "third", "release 13.1")
    path = {"PATH": f"{on_path.folder}:{os.environ['PATH']}"}
    both = device(DEVICE_PATH=str(other.folder), **path)
    assert both.toolkit.path == tools.folder / "devcc"
    runtime = device(**path)
    del runtime.environment.variables["DEVICE_HOME"]
    assert runtime.toolkit.path == on_path.folder / "devcc"
    with pytest.raises(ToolkitError, match=r"DEVICE_HOME: .*is not executable"):
        _ = device(DEVICE_HOME="/none", DEVICE_PATH=str(other.folder)).toolkit


@pytest.mark.parametrize(
    ("release", "message"),
    [("release 12.8", "must be at least 12.9"), ("nonsense", "failed to parse devcc version")],
)
def test_versions(device, home: Path, release: str, message: str) -> None:
    FakeTools(home / "bad", release)
    with pytest.raises(ToolkitError, match=message):
        device(DEVICE_HOME=str(home / "bad")).compile("k", SOURCE)


def test_flags_of_two_programs_do_not_run_together(device) -> None:
    """The border between compiler and linker flags is part of the key; so is every flag's own."""
    flags = [
        (("-a", "-b"), ()),
        (("-a",), ("-b",)),
        ((), ("-a", "-b")),
        (("-a -b",), ()),
        (("-a", "-b", ""), ()),
    ]
    runtime = device()
    keys = {
        runtime.cache_key(SOURCE, DeviceOptions(compiler_flags=one, linker_flags=two))
        for one, two in flags
    }
    assert len(keys) == len(flags)


def test_either_programs_version_moves_the_key(device, tools: FakeTools) -> None:
    before = device().cache_key(SOURCE)
    (tools.folder / "release").write_text("release 13.0\n")
    moved = device().cache_key(SOURCE)
    script = tools.folder / "devld"
    script.write_text(script.read_text().replace("devld 1", "devld 2"))
    assert len({before, moved, device().cache_key(SOURCE)}) == 3


def test_arch_overrides(device) -> None:
    runtime = device()
    assert runtime.cache_key(SOURCE, DeviceOptions(arch="100f")) != runtime.cache_key(SOURCE)
    assert runtime.cache_key(SOURCE, DeviceOptions(arch="90a")) == runtime.cache_key(SOURCE)


@pytest.mark.parametrize(
    ("says", "spills"),
    [
        ("ptxas info: 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", False),
        ("ptxas info: 8 bytes stack frame, 16 bytes spill stores, 0 bytes spill loads", True),
    ],
)
def test_spill_checks(device, tools: FakeTools, says: str, spills: bool) -> None:
    (tools.folder / "says").write_text(says + "\n")
    assert device().compile("k", SOURCE).loaded
    runtime = device(T_JIT_CHECK_NO_SPILLS="1")
    if spills:
        for _ in range(2):
            with pytest.raises(CompileError, match=rf"(?s)register spills.*devcc.*{says[:12]}"):
                runtime.compile("k", SOURCE)
        (tools.folder / "says").unlink()
    assert runtime.compile("k", SOURCE).loaded


BAD = {
    "devcc fails after writing": ("devcc", "exit 4", "exit code 4"),
    "devld fails": ("devld", "exit 5", "exit code 5"),
    "devld writes nothing": ("devld", "rm kernel.bin", "did not produce a valid binary"),
    "devld writes nothing in it": ("devld", ": > kernel.bin", "did not produce a valid binary"),
    "devdump says nothing": ("devdump", "exit 6", "exit code 6"),
}


@pytest.mark.parametrize(("tool", "script", "message"), BAD.values(), ids=BAD.keys())
def test_each_step_may_fail(device, tools: FakeTools, tool: str, script: str, message: str) -> None:
    runtime = device(T_JIT_DUMP_ASM="1")
    (tools.folder / f"{tool}.act").write_text(script)
    with pytest.raises(CompileError, match=message):
        runtime.compile("k", SOURCE)
    assert (entries(runtime), leftovers(runtime)) == ([], [])
    (tools.folder / f"{tool}.act").unlink()
    assert runtime.compile("k", SOURCE).loaded


def test_a_missing_disassembler(device, tools: FakeTools) -> None:
    (tools.folder / "devdump").rename(tools.folder / "away")
    with pytest.raises(CompileError, match=r"exit code 127"):
        device(T_JIT_DUMP_ASM="1").compile("k", SOURCE)
    (tools.folder / "away").rename(tools.folder / "devdump")
    folder = device(T_JIT_DUMP_ASM="1").compile_without_load("k", SOURCE)
    assert (folder / "asm" / "kernel.sass").read_text() == "SASS of kernel.bin\n"
    assert sorted(os.listdir(folder)) == [
        ".committed",
        "asm",
        "kernel.bin",
        "kernel.cu",
        "meta.json",
    ]
    count = len(tools.runs)
    assert device().compile("k", SOURCE).loaded
    assert len(tools.runs) == count, "dumps are not part of the key"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("none", 0),
        ("__kernel__ a __kernel__ b", 2),
        ("__kernel__ a_mix_aic __kernel__ a_mix_aiv", 1),
        ("__kernel__ a_mix_aic __kernel__ b_mix_aiv", 2),
    ],
)
def test_kernel_count(device, source: str, count: int) -> None:
    runtime = device()
    assert runtime.compile_without_load("k", source).is_dir()
    if count == 1:
        assert runtime.compile("k", source).entry == "a"
        return
    with pytest.raises(LoadError, match=rf"exactly one kernel, found {count}"):
        runtime.compile("k", source)


def test_a_forked_child_drops_device_handles(device) -> None:
    """A device's handles mean nothing in a child; it loads anew, from disk."""
    runtime = device()
    kernel = runtime.compile("k", SOURCE)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if runtime.compile("k", SOURCE) is not kernel else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert runtime.compile("k", SOURCE) is kernel


def test_in_parallel(device, tools: FakeTools) -> None:
    """Workers make the backend by its name; options arrive complete, so none asks a device."""
    runtime = device()
    folders = runtime.par_compile([(f"k{n}", SOURCE, DeviceOptions(arch=str(n))) for n in range(3)])
    assert [folder.name.partition(".")[0] for folder in folders] == ["k0", "k1", "k2"]
    assert sorted(tools.runs) == ["devcc"] * 3 + ["devld"] * 3
