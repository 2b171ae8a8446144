"""Collective ops on real ranks: what their ``launch.py`` files share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ep_comm.launch import Pool, available

if TYPE_CHECKING:
    from ascendkit.op import Op
    from ep_comm.buffer import EPBuffer

Launcher = Callable[["Op", Sequence[tuple[Any, ...]]], list[Any]]
BACKENDS = ("mpi", "gloo")


def launchers() -> dict[str, Launcher]:
    """Backends that can run here; each runs an op's ``launch.on_rank`` on every rank."""
    return {b: _launcher(b) for b in BACKENDS if not available(b)}


def small(group: Any, hidden: int, num_topk: int, options: dict[str, Any]) -> EPBuffer:
    """A deterministic buffer just large enough for a case."""
    from ep_comm.buffer import EPBuffer

    if options.get("scaleup_ranks"):
        group.scaleup_ranks = options["scaleup_ranks"]
    else:
        group.scaleup_ranks = group.size
    return EPBuffer(
        group, None, options["num_max_tokens_per_rank"], hidden, num_topk, deterministic=True,
        allow_multiple_reduction=options.get("multiple_reduction", True), explicitly_destroy=True,
    )  # fmt: skip


def _launcher(backend: str) -> Launcher:
    def run(op: Op, per_rank: Sequence[tuple[Any, ...]]) -> list[Any]:
        return _pool(backend, len(per_rank)).run(f"{op.name}.launch:on_rank", list(per_rank))

    return run


@lru_cache(maxsize=4)
def _pool(backend: str, ranks: int) -> Pool:
    # Ended by the interpreter's exit: cases come one by one, and processes cost seconds.
    return Pool(backend, ranks)
