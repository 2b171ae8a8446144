"""The host backend with the machine's own compiler: what is built, linked, loaded and left."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ascendkit.jit import CompileError, HostOptions, LaunchError, LoadError
from ascendkit.jit.host import DEFAULT_FLAGS

from .conftest import Make, entries, leftovers
from .test_calls import FILL, blocks

LIBRARY = """
extern "C" __attribute__((visibility("default"))) int triple(int x) { return 3 * x; }
int count = 0;
extern "C" __attribute__((visibility("default"))) int next() { return ++count; }
"""


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("int helper() { return 1; }", "found 0: mark it with ASCENDKIT_KERNEL"),
        ("ASCENDKIT_KERNEL void a() {} ASCENDKIT_KERNEL void b() {}", r"found 2 \(a, b\)"),
    ],
)
def test_exactly_one_kernel(real: Make, source: str, count: str) -> None:
    runtime = real()
    for _ in range(2):
        with pytest.raises(LoadError, match=f"expected exactly one kernel, {count}"):
            runtime.compile("k", source)
    assert runtime.compile_without_load("k", source).is_dir()


def test_unmarked_exports_do_not_count(real: Make) -> None:
    source = """
    extern "C" __attribute__((visibility("default"))) int other() { return 4; }
    template <int N> int g() { return N; }
    ASCENDKIT_KERNEL int f() { return other() + g<3>(); }
    """
    kernel = real().compile("k", source)
    assert (kernel.entry, kernel(), kernel.symbol("other")()) == ("f", 7, 4)


def test_kernels_share_a_library(real: Make) -> None:
    """The emulator's way: one precompiled part, thin kernels linked against it."""
    runtime = real()
    library = runtime.compile("part", LIBRARY, HostOptions(output="library"))
    assert library.symbol("triple")(5) == 15
    assert library.entry == ""
    options = HostOptions(link_inputs=[library.path])
    source = 'extern "C" int triple(int), next(); ASCENDKIT_KERNEL int {}(int x) {{ return {}; }}'
    one = runtime.compile("one", source.format("f", "triple(x)"), options)
    two = runtime.compile("two", source.format("g", "next()"), options)
    three = runtime.compile("three", source.format("h", "next()"), options)
    assert (one(7), two(0), three(0), library.symbol("next")()) == (21, 1, 2, 3)
    with pytest.raises(LaunchError, match=r"is a library"):
        library(1)
    with pytest.raises(LaunchError, match=r"is a library"):
        runtime.launch(library, blocks(1))


def test_a_moved_cache_still_links(real: Make, home: Path) -> None:
    source = 'extern "C" int triple(int); ASCENDKIT_KERNEL int f(int x) { return triple(x); }'

    def use(root: str):
        runtime = real(environ={"T_JIT_CACHE_DIR": str(home / root)})
        part = runtime.compile("part", LIBRARY, HostOptions(output="library"))
        return runtime.compile("k", source, HostOptions(link_inputs=[part.path]))

    use("one")
    (home / "one").rename(home / "two")
    before = entries(real(environ={"T_JIT_CACHE_DIR": str(home / "two")}))
    kernel = use("two")
    assert kernel(2) == 6
    assert entries(real(environ={"T_JIT_CACHE_DIR": str(home / "two")})) == before


def test_objects_link_into_kernels(real: Make, tmp_path: Path) -> None:
    runtime = real()
    text = 'extern "C" int triple(int x) { return 3 * x; }'
    folder = runtime.compile_without_load("part", text, HostOptions(output="object"))
    source = 'extern "C" int triple(int); ASCENDKIT_KERNEL int f(int x) { return triple(x); }'
    options = HostOptions(link_inputs=[folder / "object.o"])
    assert runtime.compile("k", source, options)(3) == 9
    with pytest.raises(LoadError, match=r"use compile_without_load and link it"):
        runtime.compile("part", text, HostOptions(output="object"))


def test_unresolved_symbols_fail_when_compiling(real: Make) -> None:
    with pytest.raises(CompileError, match=r"undefined reference to `asc_unknown'"):
        real().compile(
            "k", 'extern "C" int asc_unknown(); ASCENDKIT_KERNEL int f() { return asc_unknown(); }'
        )


def test_errors_say_everything_and_leave_nothing(real: Make) -> None:
    runtime = real()
    with pytest.raises(CompileError) as caught:
        runtime.compile("my_kernel", "int x = ;\n" * 200)
    error = caught.value
    text = str(error)
    assert "kernel 'my_kernel': command failed with exit code 1" in text
    assert "-std=c++20" in text
    assert ":9: error: expected" in text
    assert "lines before" in text
    assert "kernel.cpp:1:9: error" in error.output
    assert (error.kernel, error.command[-2:]) == ("my_kernel", ("-o", "kernel.so"))
    assert (entries(runtime), leftovers(runtime)) == ([], [])
    assert runtime.compile("my_kernel", "ASCENDKIT_KERNEL int f() { return 1; }")() == 1


def test_headers_are_found_and_tracked(real: Make, home: Path) -> None:
    header = home / "in clude é" / "ak" / "value.h"
    header.parent.mkdir(parents=True)
    config = {"include_dirs": [header.parent.parent], "include_prefixes": ["ak/"]}
    source = "#include <ak/value.h>\nASCENDKIT_KERNEL int f() { return VALUE; }"
    for value in (3, 4):
        header.write_text(f"#define VALUE {value}\n")
        assert real(**config).compile("k", source)() == value


def test_a_relocated_include_folder_costs_no_compilation(make: Make, home: Path, fake) -> None:
    header = home / "one" / "ak" / "a.h"
    header.parent.mkdir(parents=True)
    header.write_text("")
    source = "#include <ak/a.h>"
    first = make(include_dirs=[home / "one"], include_prefixes=["ak/"])
    folder = first.compile("k", source).path.parent
    before = (folder / "meta.json").read_bytes()
    (home / "one").rename(home / "two")
    moved = make(include_dirs=[home / "two"], include_prefixes=["ak/"])
    assert moved.compile("k", source).path.parent == folder
    assert fake.runs == 1
    assert (folder / "meta.json").read_bytes() == before
    assert str(home / "one") in json.loads(before)["config"]["include_dirs"]


def test_untracked_dependency_through_flags(real: Make, home: Path) -> None:
    (home / "dep").mkdir()
    (home / "dep" / "dep.h").write_text("#define DEP 9\n")
    source = "#include <dep.h>\nASCENDKIT_KERNEL int f() { return DEP; }"
    runtime = real()
    with pytest.raises(CompileError, match=r"dep\.h.*file"):
        runtime.compile("k", source)
    assert runtime.compile("k", source, HostOptions(extra_flags=["-I", str(home / "dep")]))() == 9


def test_macros_choose_the_signature(real: Make) -> None:
    source = """
    #ifdef WIDE
    ASCENDKIT_KERNEL int f(long long x) { return x >> 40; }
    #else
    ASCENDKIT_KERNEL int f(int x) { return x; }
    #endif
    """
    runtime = real()
    assert runtime.compile("k", source)(5) == 5
    assert runtime.compile("k", source, HostOptions(extra_flags=["-DWIDE"]))(7 << 40) == 7


def test_unload_and_reload(real: Make) -> None:
    runtime = real()
    source = "static int n = 0; ASCENDKIT_KERNEL int f() { return ++n; }"
    kernel = runtime.compile("k", source)
    assert (kernel(), kernel()) == (1, 2)
    symbol = kernel.symbol("f")
    kernel.unload()
    kernel.unload()
    assert "unloaded" in repr(kernel)
    with pytest.raises(LaunchError, match=r"must be loaded before launch"):
        kernel()
    with pytest.raises(LaunchError, match=r"must be loaded before launch"):
        runtime.launch(kernel, blocks(1))
    assert symbol() == 3, "a function handed out keeps its code"
    del symbol
    gc.collect()
    again = runtime.compile("k", source)
    assert again is not kernel
    assert again() == 1, "the code was really unmapped"


@pytest.mark.parametrize("flags", [DEFAULT_FLAGS, ("-fPIC",)])
def test_statics_of_two_kernels_are_apart(real: Make, flags: tuple[str, ...]) -> None:
    """Also where they are visible: the linker would merge unique symbols across the process."""
    text = """
    inline int& n() {{ static int v = 0; return v; }}
    ASCENDKIT_KERNEL int f() {{ n() += {}; return n(); }}
    """
    runtime = real()
    options = HostOptions(flags=flags)
    one, two = (runtime.compile("k", text.format(step), options) for step in (1, 10))
    assert (one(), two(), one(), two()) == (1, 10, 2, 20)


def test_assembly_on_demand(real: Make) -> None:
    runtime = real()
    source = "ASCENDKIT_KERNEL int f() { return 1; }"
    folder = runtime.compile_without_load("k", source, HostOptions(dump_asm=True))
    assert "f:" in (folder / "kernel.s").read_text()
    assert real().compile("k", source)() == 1
    other = runtime.compile_without_load("l", source)
    assert runtime.compile_without_load("l", source, HostOptions(dump_asm=True)) == other
    assert not (other / "kernel.s").exists(), "a dump on a hit does not rebuild"


def test_artifacts_do_not_depend_on_where_they_are_made(real: Make, home: Path) -> None:
    made = []
    for root in ("a", "a much longer name"):
        runtime = real(environ={"T_JIT_CACHE_DIR": str(home / root)})
        for options in (HostOptions(debug_info=True), HostOptions(extra_flags=["-g1"])):
            folder = runtime.compile_without_load("k", FILL, options)
            made.append((folder / "kernel.so").read_bytes())
    assert made[:2] == made[2:]


def test_a_huge_source(real: Make) -> None:
    source = "// " + "x" * 120 + "\n"
    source = source * 40_000 + "ASCENDKIT_KERNEL int f() { return 5; } // 编译\n"
    assert real().compile("k", source)() == 5


def test_threads_compile_and_call(real: Make) -> None:
    runtime = real()
    results: dict[int, int] = {}

    def work(index: int) -> None:
        source = f"ASCENDKIT_KERNEL int f() {{ return {index % 3}; }}"
        results[index] = runtime.compile("k", source)()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {index: index % 3 for index in range(12)}
    assert len(entries(runtime)) == 3


def test_device_name(real: Make) -> None:
    assert real().device == f"host {os.uname().machine}"


VICTIM = """
import gc, os, sys
from ascendkit.jit import Config, HostBackend, HostOptions, Runtime
environ = {**os.environ, "T_JIT_CACHE_DIR": sys.argv[1]}
runtime = Runtime(HostBackend(), Config("/", "T"), environ=environ)
text = 'extern "C" __attribute__((visibility("default"))) int base() { return 40; }'
part = runtime.compile("part", text, HostOptions(output="library"))
source = 'extern "C" int base(); ASCENDKIT_KERNEL int f(int x) { return base() + x; }'
kernel = runtime.compile("k", source, HostOptions(link_inputs=[part.path]))
for path in (kernel.path, part.path):
    os.truncate(path, 0)
print(kernel(2))
kernel.unload()
del kernel
gc.collect()
print("alive")
"""


def test_a_file_truncated_under_a_running_process(home: Path) -> None:
    """A mapped file would end the process by a bus error: in a call, or when it is unloaded."""
    done = subprocess.run(
        [sys.executable, "-c", VICTIM, str(home / "r")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["42", "alive"], "")


def test_reused_descriptors_do_not_confuse_the_linker(real: Make) -> None:
    """Loaded copies get names of their own, also after their descriptors are gone."""
    runtime = real()
    kernels = [
        runtime.compile("k", f"ASCENDKIT_KERNEL int f() {{ return {n}; }}") for n in range(20)
    ]
    assert [kernel() for kernel in kernels] == list(range(20))
    before = len(os.listdir("/proc/self/fd"))
    runtime.compile("k", "ASCENDKIT_KERNEL int f() { return 99; }")
    assert len(os.listdir("/proc/self/fd")) == before


def test_where_copies_may_not_run(real: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, flags: int = 0) -> int:
        raise OSError(38, "Function not implemented")

    runtime = real()
    source = "ASCENDKIT_KERNEL int only_here() { return 8; }"
    folder = runtime.compile_without_load("k", source)
    monkeypatch.setattr("os.memfd_create", refuse)
    kernel = runtime.compile("k", source)
    assert kernel() == 8
    assert str(folder / "kernel.so") in Path("/proc/self/maps").read_text()


def test_debuggers_find_the_file(real: Make) -> None:
    kernel = real().compile(
        "k", "ASCENDKIT_KERNEL int f() { return 8; }", HostOptions(debug_info=True)
    )
    assert kernel() == 8
    assert str(kernel.path) in Path("/proc/self/maps").read_text()


def test_a_hostile_environment(real: Make, home: Path) -> None:
    """What other builds leave in the environment does not break ours, nor write files."""
    deps = home.parent / "deps"
    environ = {
        "DEPENDENCIES_OUTPUT": str(deps),
        "SUNPRO_DEPENDENCIES": "",
        "CPATH": ":::",
        "LC_ALL": "zz_ZZ",
        "LANGUAGE": "garbage",
        "PWD": "/lies",
        "TMPDIR": "/none",
        "GCC_COLORS": "x",
        "LD_RUN_PATH": "/none",
    }
    assert real(environ=environ).compile("k", "ASCENDKIT_KERNEL int f() { return 2; }")() == 2
    assert not deps.exists()


def test_a_deleted_working_folder(real: Make, home: Path) -> None:
    before = Path.cwd()
    gone = home / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        assert real().compile("k", "ASCENDKIT_KERNEL int f() { return 2; }")() == 2
    finally:
        os.chdir(before)
