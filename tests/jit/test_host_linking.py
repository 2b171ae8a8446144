"""Parts that kernels of the host backend are linked against, and what must stay apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendkit.jit import CompileError, HostOptions, LaunchError, LoadError
from ascendkit.jit.host import DEFAULT_FLAGS

from .conftest import Make, entries
from .test_calls import blocks

LIBRARY = """
extern "C" __attribute__((visibility("default"))) int triple(int x) { return 3 * x; }
int count = 0;
extern "C" __attribute__((visibility("default"))) int next() { return ++count; }
"""


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
