"""Fill a folder with everything an entry holds, except its commit marker."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from ascendkit.jit import files
from ascendkit.jit.backend import Backend, Job
from ascendkit.jit.config import Config
from ascendkit.jit.disk import DiskCache
from ascendkit.jit.key import hook_path
from ascendkit.jit.options import CompilerT

METADATA = "meta.json"


def build(
    backend: Backend[CompilerT, Any],
    config: Config,
    disk: DiskCache,
    job: Job[CompilerT],
    source: str,
) -> str:
    """Write the source, compile it, run the hook, write ``meta.json``; returns the command lines.

    Raises:
        CompileError: a program failed.
        CacheError: the disk is full or not writable.
    """
    with disk.writing():
        files.write_file(job.directory / backend.source_file, source.encode())
    backend.compile(job)
    command = "\n".join(map(shlex.join, _portable(job)))
    if job.options.post_hook:
        hook = hook_path(config, job.options.post_hook)
        job.run([sys.executable, str(hook), str(job.directory / backend.artifact(job.options))])
    record = {
        "command": command,
        "config": config.metadata(),
        "compiler_info": dict(job.toolkit.info),
        "compiler_options": job.options.metadata(),
    }
    if (job.directory / METADATA).exists():
        raise job.fail(f"the compiler left a {METADATA} of its own")
    with disk.writing():
        files.write_file(job.directory / METADATA, dump(record))
    return command


def _portable(job: Job[CompilerT]) -> list[list[str]]:
    """The commands as if run where the entry will be."""
    return [[word.replace(str(job.directory), ".") for word in row] for row in job.commands]


def dump(record: Mapping[str, object]) -> bytes:
    """``record`` as JSON of strings, integers, booleans, lists and objects; None for unset.

    Raises:
        TypeError: anything else, floats included: their text is not the same everywhere.
        ValueError: an integer beyond 64 bits.
    """
    _check(record)
    return json.dumps(record, indent=1).encode() + b"\n"


def _check(value: object) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"metadata: got a key {key!r}, wanted str")
            _check(item)
    elif isinstance(value, list):
        for item in value:
            _check(item)
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError(f"metadata: got {value}, wanted an integer of at most 64 bits")
    elif not (value is None or isinstance(value, str)):
        raise TypeError(
            f"metadata: got {type(value).__name__}, wanted str, int, bool, list or None"
        )
