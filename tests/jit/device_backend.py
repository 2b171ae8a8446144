"""A backend shaped like those of devices: two programs, a binary, a check of the compiler's words.

Its compiler and linker are scripts, its "device" is a Python list. It stands in for what CUDA
(CUDA_HOME, version floor, spill checks, disassembler) and Ascend (compiler and linker with flags of
their own) need from the interface, on a machine that has neither.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascendkit.jit import (
    UNSET,
    CompilerOptions,
    Job,
    LaunchError,
    LaunchOptions,
    LoadError,
    Module,
    Toolkit,
    ToolkitError,
    command,
)
from ascendkit.jit.arguments import pack
from ascendkit.jit.environment import Environment
from ascendkit.jit.files import is_executable, read_file
from ascendkit.jit.options import check, freeze_texts

MAGIC = b"CUBIN:"
OLDEST = (12, 9)


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(CompilerOptions):
    arch: str = UNSET
    check_no_spills: bool = UNSET
    dump_asm: bool = UNSET
    compiler_flags: tuple[str, ...] = UNSET
    linker_flags: tuple[str, ...] = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, "arch", str)
        check(self, "check_no_spills", bool)
        check(self, "dump_asm", bool)
        freeze_texts(self, "compiler_flags")
        freeze_texts(self, "linker_flags")


@dataclass(frozen=True, kw_only=True)
class DeviceLaunchOptions(LaunchOptions):
    grid: int = UNSET
    block: int = UNSET
    smem: int = UNSET


class DeviceModule:
    def __init__(self, kernels: list[str]) -> None:
        self.kernels = kernels
        self.closed = False

    def symbol(self, name: str) -> object:
        if name not in self.kernels:
            raise LoadError(f"no {name}")
        return name

    def call(self, name: str, args: Sequence[object]) -> object:
        raise LaunchError("a device kernel is launched, not called")

    def close(self) -> None:
        self.closed = True


class DeviceBackend:
    name = "device"
    source_file = "kernel.cu"
    options_type = DeviceOptions
    fork_safe = False
    launched: list[tuple[str, DeviceLaunchOptions, bytes]]

    def __init__(self) -> None:
        self.launched = []

    def arguments(self) -> dict[str, object]:
        return {}

    def find_toolkit(self, environment: Environment) -> Toolkit:
        for name in ("DEVICE_HOME", "DEVICE_PATH"):
            home = environment.variables.get(name)
            if home is not None:
                path = Path(home) / "devcc"
                if not is_executable(path):
                    raise ToolkitError(f"{name}: {path} is not executable")
                break
        else:
            found = shutil.which("devcc", path=environment.variables.get("PATH", os.defpath))
            if found is None:
                raise ToolkitError("no devcc")
            path = Path(found)
        versions = [command.run([str(path.parent / n), "--version"]) for n in ("devcc", "devld")]
        match = re.search(r"release (\d+)\.(\d+)", versions[0])
        if match is None:
            raise ToolkitError("failed to parse devcc version")
        if (int(match.group(1)), int(match.group(2))) < OLDEST:
            raise ToolkitError("devcc must be at least 12.9")
        info = {
            "path": str(path),
            "version": versions[0].strip(),
            "linker_version": versions[1].strip(),
        }
        return Toolkit(path, tuple(versions), info, "dav9")

    def default_options(self, environment: Environment) -> DeviceOptions:
        return DeviceOptions(
            post_hook="",
            arch="90a",
            check_no_spills=environment.flag("JIT_CHECK_NO_SPILLS"),
            dump_asm=environment.flag("JIT_DUMP_ASM"),
            compiler_flags=(),
            linker_flags=(),
        )

    def default_launch(self, environment: Environment) -> DeviceLaunchOptions:
        return DeviceLaunchOptions(smem=0)

    def artifact(self, options: DeviceOptions) -> str:
        return "kernel.bin"

    def flags(self, options: DeviceOptions, toolkit: Toolkit) -> tuple[tuple[str, ...], ...]:
        warn = ("--warn-on-spills",) if options.check_no_spills else ()
        return (f"--arch={options.arch}", *warn, *options.compiler_flags), options.linker_flags

    def inputs(self, options: DeviceOptions) -> tuple[Path, ...]:
        return ()

    def compile(self, job: Job[DeviceOptions]) -> None:
        compiling, linking = self.flags(job.options, job.toolkit)
        tools = job.toolkit.path.parent
        output = job.run([str(tools / "devcc"), *compiling, self.source_file, "-o", "kernel.rel"])
        if job.options.check_no_spills and re.search(r"[1-9]\d* bytes spill", output):
            raise job.fail("register spills", output)
        job.run([str(tools / "devld"), *linking, "kernel.rel", "-o", "kernel.bin"])
        (job.directory / "kernel.rel").unlink()
        path = job.directory / "kernel.bin"
        if not path.is_file() or not read_file(path).startswith(MAGIC):
            raise job.fail("devld did not produce a valid binary")
        if job.options.dump_asm:
            text = job.run([str(tools / "devdump"), "kernel.bin"])
            if not text.strip():
                raise job.fail("did not produce valid assembly", text)
            (job.directory / "asm").mkdir()
            (job.directory / "asm" / "kernel.sass").write_text(text)

    def load(self, artifact: Path, image: bytes, options: DeviceOptions) -> tuple[Module, str]:
        if not image.startswith(MAGIC):
            raise LoadError(f"{artifact}: invalid binary")
        found = re.findall(rb"__kernel__ (\w+)", image)
        # A mixed kernel has a cube and a vector half under one name.
        names = sorted({re.sub(rb"_mix_ai[cv]$", b"", name).decode() for name in found})
        if len(names) != 1:
            raise LoadError(f"expected exactly one kernel, found {len(names)}")
        return DeviceModule(names), names[0]

    def launch(
        self, module: Module, entry: str, options: DeviceLaunchOptions, args: Sequence[object]
    ) -> None:
        if options.grid < 1:
            raise ValueError("grid must be positive")
        self.launched.append((str(module.symbol(entry)), options, pack(args)))


SCRIPTS = {
    "devcc": r"""
[ "$1" = --version ] && cat "$here/release" && exit
echo devcc >> "$here/runs"
[ -e "$here/says" ] && cat "$here/says"
{ printf CUBIN:; cat kernel.cu; } > kernel.rel
[ ! -e "$here/devcc.act" ] || . "$here/devcc.act"
""",
    "devld": r"""
[ "$1" = --version ] && echo "devld 1" && exit
echo devld >> "$here/runs"
cp kernel.rel kernel.bin
[ ! -e "$here/devld.act" ] || . "$here/devld.act"
""",
    "devdump": r"""
echo devdump >> "$here/runs"
echo "SASS of $1"
[ ! -e "$here/devdump.act" ] || . "$here/devdump.act"
""",
}


class FakeTools:
    """The scripts, in ``folder``."""

    def __init__(self, folder: Path, release: str = "release 12.9") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        (folder / "release").write_text(release + "\n")
        for name, body in SCRIPTS.items():
            path = folder / name
            path.write_text('#!/bin/sh\nPATH="$PATH:/usr/bin:/bin"\nhere="${0%/*}"\n' + body)
            path.chmod(0o755)

    @property
    def runs(self) -> list[str]:
        path = self.folder / "runs"
        return path.read_text().split() if path.exists() else []
