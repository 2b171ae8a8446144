"""Run a program from an argument list, without a shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ascendkit.jit.errors import CommandError


def run(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run ``command`` to its end and return its output, stdout and stderr together.

    Output goes to a file in memory: a grandchild that outlives the command cannot block us, as it
    would with a pipe. The interpreter lock is free while the command runs.

    Raises:
        ValueError: the command is empty.
        CommandError: a non-zero status; 128 + signal when a signal ended it, 127 when not started.
    """
    if not command or not command[0]:
        raise ValueError("command must not be empty")
    with os.fdopen(os.memfd_create("log"), "w+b") as log:
        try:
            returncode = subprocess.run(
                list(command),
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        except OSError as error:
            raise CommandError(command, 127, f"{command[0]}: {error.strerror}") from error
        log.seek(0)
        output = log.read().decode(errors="replace")
    if returncode:
        raise CommandError(command, returncode if returncode > 0 else 128 - returncode, output)
    return output
