"""Options of the host backend."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ascendkit.errors import bad_type, bad_value, unknown
from ascendkit.jit.options import UNSET, CompilerOptions, LaunchOptions, check, freeze_texts

ARTIFACTS = {"kernel": "kernel.so", "library": "library.so", "object": "object.o"}
OPTIMIZE_LEVELS = ("0", "1", "2", "3", "fast", "g", "s")
STANDARDS = (17, 20, 23)
MAX_BLOCKS = (1 << 32) - 1
MAX_THREADS = 1024


@dataclass(frozen=True, kw_only=True)
class HostOptions(CompilerOptions):
    """How to compile C++ for this machine.

    Args:
        output: ``kernel`` (shared object with exactly one function marked ASCENDKIT_KERNEL),
            ``library`` (shared object, to link kernels against) or ``object`` (relocatable).
        standard: C++ standard, e.g. 20.
        optimize_level: what follows ``-O``.
        debug_info: add ``-g``.
        dump_asm: also leave ``kernel.s`` beside the artifact when compiling; not part of the key.
        flags: replaces the default compiler flags.
        extra_flags: compiler flags after ``flags``.
        link_flags: replaces the default linker flags.
        extra_link_flags: linker flags after ``link_flags``.
        link_inputs: objects, archives and shared libraries to link; their contents enter the key.
    """

    output: str = UNSET
    standard: int = UNSET
    optimize_level: str = UNSET
    debug_info: bool = UNSET
    dump_asm: bool = UNSET
    flags: tuple[str, ...] = UNSET
    extra_flags: tuple[str, ...] = UNSET
    link_flags: tuple[str, ...] = UNSET
    extra_link_flags: tuple[str, ...] = UNSET
    link_inputs: tuple[Path, ...] = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("output", "optimize_level"):
            check(self, name, str)
        check(self, "standard", int)
        for name in ("debug_info", "dump_asm"):
            check(self, name, bool)
        for name in ("flags", "extra_flags", "link_flags", "extra_link_flags"):
            freeze_texts(self, name)
        if self.output is not UNSET and self.output not in ARTIFACTS:
            raise unknown("HostOptions.output", self.output, ARTIFACTS)
        if self.optimize_level is not UNSET and self.optimize_level not in OPTIMIZE_LEVELS:
            raise unknown("HostOptions.optimize_level", self.optimize_level, OPTIMIZE_LEVELS)
        if self.standard is not UNSET and self.standard not in STANDARDS:
            nearest = min(STANDARDS, key=lambda legal: abs(legal - self.standard))
            raise bad_value("HostOptions.standard", self.standard, f"one of {STANDARDS}", nearest)
        if self.link_inputs is not UNSET:
            object.__setattr__(self, "link_inputs", _paths(self.link_inputs))


@dataclass(frozen=True, kw_only=True)
class HostLaunchOptions(LaunchOptions):
    """How to launch on this machine.

    Args:
        num_blocks: the kernel runs once for each block, required.
        num_threads: threads that share the blocks; 1 is the calling thread.
    """

    num_blocks: int = UNSET
    num_threads: int = UNSET

    def __post_init__(self) -> None:
        for name, most in (("num_blocks", MAX_BLOCKS), ("num_threads", MAX_THREADS)):
            check(self, name, int)
            value = getattr(self, name)
            if value is not UNSET and not 0 < value <= most:
                what = "block count" if name == "num_blocks" else "thread count"
                nearest = min(max(value, 1), most)
                raise bad_value(
                    f"HostLaunchOptions.{name}: {what} must be positive and at most {most}",
                    value,
                    f"1..{most}",
                    nearest,
                )


def _paths(items: object) -> tuple[Path, ...]:
    if isinstance(items, (str, bytes, os.PathLike)) or not hasattr(items, "__iter__"):
        raise bad_type("HostOptions.link_inputs", items, "a sequence of paths")
    # Commands run in a folder of their own, where a relative path would mean something else.
    return tuple(Path(os.path.abspath(item)) for item in items)
