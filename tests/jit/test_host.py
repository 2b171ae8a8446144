"""The host backend with the machine's own compiler: what is built, loaded and left."""

from __future__ import annotations

import gc
import json
import os
import threading
from pathlib import Path

import pytest

from ascendkit.jit import CompileError, HostOptions, LaunchError, LoadError

from .conftest import Make, entries, leftovers
from .test_calls import blocks


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


def test_assembly_on_demand(real: Make) -> None:
    runtime = real()
    source = "ASCENDKIT_KERNEL int f() { return 1; }"
    folder = runtime.compile_without_load("k", source, HostOptions(dump_asm=True))
    assert "f:" in (folder / "kernel.s").read_text()
    assert real().compile("k", source)() == 1
    other = runtime.compile_without_load("l", source)
    assert runtime.compile_without_load("l", source, HostOptions(dump_asm=True)) == other
    assert not (other / "kernel.s").exists(), "a dump on a hit does not rebuild"


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
