"""What a machine must offer to be compiled for: the seam between the runtime and its backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol

from ascendkit.jit import command
from ascendkit.jit.environment import Environment
from ascendkit.jit.errors import CommandError, CompileError
from ascendkit.jit.options import CompilerT, LaunchT

_SIDE_OUTPUTS = ("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES")
"""Variables that make a compiler write files elsewhere, meant for the build that started us."""


@dataclass(frozen=True)
class Toolkit:
    """The programs a backend found.

    Attributes:
        path: the compiler, or the folder of the toolkit.
        identity: texts that enter every key, one for each program; no paths.
        info: recorded in ``meta.json``, e.g. path and version.
        arch: what the machine's code is called, for backends that ask no device.
    """

    path: Path
    identity: tuple[str, ...]
    info: Mapping[str, str]
    arch: str = ""


@dataclass(frozen=True)
class Job(Generic[CompilerT]):
    """One compilation: everything a backend's ``compile`` may look at.

    Attributes:
        name: the entry's name, ``<tag>.<digest>``.
        directory: where to leave the artifact; the source file is there already. Commands run here.
        include_dirs: the configuration's folders.
        environment: the library's environment as it was when the runtime was made.
        commands: filled by ``run``.
    """

    tag: str
    name: str
    directory: Path
    options: CompilerT
    toolkit: Toolkit
    include_dirs: tuple[Path, ...]
    environment: Environment
    commands: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: Sequence[str]) -> str:
        """Run a program in the job's folder, scratch files included, and return its output.

        Raises:
            CompileError: it failed.
        """
        self.commands.append(tuple(argv))
        variables = {**self.environment.variables, "LC_ALL": "C", "TMPDIR": str(self.directory)}
        for name in _SIDE_OUTPUTS:
            variables.pop(name, None)
        try:
            return command.run(argv, cwd=self.directory, env=variables)
        except CommandError as error:
            problem = f"command failed with exit code {error.returncode}"
            raise CompileError(self.tag, problem, error.command, error.output) from error

    def fail(self, problem: str, output: str = "") -> CompileError:
        """The error for a program that ended well but did not do its work."""
        last = self.commands[-1] if self.commands else ()
        return CompileError(self.tag, problem, last, output)


class Module(Protocol):
    """A loaded artifact."""

    def symbol(self, name: str) -> object:
        """The exported function ``name``, callable from Python where the machine allows.

        Raises:
            LoadError: there is none.
        """

    def call(self, name: str, args: Sequence[object]) -> object:
        """Call the exported function ``name`` in this thread, where the machine allows.

        Raises:
            LoadError: there is none.
            TypeError, ValueError: an argument has no C type.
        """

    def close(self) -> None:
        """Let go of the machine's resources; harmless when repeated."""


class Backend(Protocol[CompilerT, LaunchT]):
    """A compiler and a machine. Stateless: a runtime remembers what must be remembered.

    ``find_toolkit`` is the first method called, on first use, and the only one that searches.
    """

    name: str
    source_file: str
    options_type: type[CompilerT]
    fork_safe: bool
    """Whether loaded kernels still work in a forked child."""

    def arguments(self) -> dict[str, object]:
        """Keyword arguments, fit for JSON, that make an equal backend in another process."""

    def find_toolkit(self, environment: Environment) -> Toolkit:
        """Find the programs and ask for their versions.

        Raises:
            ToolkitError: none found, set to something unusable, or too old.
        """

    def default_options(self, environment: Environment) -> CompilerT:
        """Every compiler option set."""

    def default_launch(self, environment: Environment) -> LaunchT:
        """Launch options; those a launch must give stay unset."""

    def artifact(self, options: CompilerT) -> str:
        """File name of what ``compile`` makes."""

    def flags(self, options: CompilerT, toolkit: Toolkit) -> tuple[tuple[str, ...], ...]:
        """Effective flags, one group a program; they enter the key group by group."""

    def inputs(self, options: CompilerT) -> tuple[Path, ...]:
        """Files besides the source whose contents enter the key."""

    def compile(self, job: Job[CompilerT]) -> None:
        """Turn ``job.directory / source_file`` into the artifact, and check that it is one.

        Raises:
            CompileError: it did not work.
        """

    def load(self, artifact: Path, image: bytes, options: CompilerT) -> tuple[Module, str]:
        """Load an artifact; returns the module and the name of its one kernel.

        ``image`` is what ``artifact`` held when it was proved; it is safer to load than the file.

        Raises:
            LoadError: not loadable, or not exactly one kernel.
        """

    def launch(self, module: Module, entry: str, options: LaunchT, args: Sequence[object]) -> None:
        """Start the kernel with complete launch options.

        Raises:
            ValueError, TypeError: options or arguments out of range.
        """
