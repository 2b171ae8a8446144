"""One rank of a pool: ``python -m ep_comm.worker BACKEND FOLDER SCALEUP_RANKS PARENT``."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

PARENT_S = 1.0


def resolve(function: str) -> Callable[..., Any]:
    """``module:name`` as the function itself."""
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def group_of(backend: str, folder: Path, near: int | None) -> Any:
    """This process's group."""
    if backend == "mpi":
        from ep_comm.transport.mpi import MPIGroup

        return MPIGroup(None, near)
    import torch.distributed as dist

    from ep_comm.transport.torch_dist import TorchGroup

    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timedelta(seconds=60),
    )
    return TorchGroup(None, near)


def main(argv: list[str]) -> None:
    """Serve tasks until the folder says stop, or the caller is gone."""
    import torch

    torch.set_num_threads(1)
    backend, folder, near, parent = argv[0], Path(argv[1]), int(argv[2]), int(argv[3])
    group = group_of(backend, folder, near or None)
    number, looked = 1, time.monotonic()
    while not (folder / "stop").exists():
        task = folder / f"task-{number}.pt"
        if not task.exists():
            time.sleep(0.002)
            if time.monotonic() - looked > PARENT_S:
                looked = time.monotonic()
                if not _alive(parent):
                    os._exit(1)
            continue
        function, args = torch.load(task, weights_only=False)
        answer = folder / f"result-{number}-{group.rank}.pt"
        try:
            result: tuple[bool, Any] = (False, resolve(function)(group, *args[group.rank]))
        except Exception as e:
            result = (True, (type(e).__name__, str(e)))
        torch.save(result, answer.with_suffix(".part"))
        answer.with_suffix(".part").rename(answer)
        number += 1
    # A peer may be gone: no farewell that would wait for it.
    sys.stdout.flush()
    os._exit(0)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
