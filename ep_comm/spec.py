"""Cases of the contract: what is asked of a backend, and the inputs, drawn alike on every rank."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from ep_comm.reference import Sent

FP8_BLOCK = 128


@dataclass(frozen=True)
class Spec:
    """One case.

    Args:
        tokens: T; rank r has max(0, T - r) tokens, or ``counts[r % len]``.
        masked: share of choices that are -1.
        routing: kind, as in :mod:`ascendkit.testing`.
        clone: the caller hands a copy of its choices over and overwrites its own.
        The rest: arguments of the calls, or of the buffer.
    """

    tokens: int = 65
    hidden: int = 256
    num_topk: int = 6
    num_experts: int = 64
    alignment: int = 1
    fp8: bool = False
    num_bias: int = 0
    previous_event: bool = False
    asynchronous: bool = False
    on_comm_stream: bool = False
    clone: bool = False
    deferred: bool = False
    cpu_sync: bool = True
    deterministic: bool = False
    multiple: bool = True
    hybrid: bool = True
    arrival_seed: int | None = None
    routing: str = "uniform"
    masked: float = 0.0
    counts: tuple[int, ...] = ()
    seed: int = 0


def matrix(base: Spec) -> Iterator[Spec]:
    """The 144 cases: clone x alignment x fp8 x biases x (event, async, allocation)."""
    # With an event, tensors are allocated on the communication stream; without one, either way.
    overlap = [
        (event, async_, comm)
        for event, async_, comm in itertools.product((False, True), repeat=3)
        if comm or not event
    ]
    for clone, a, fp8, bias, (event, async_, comm) in itertools.product(
        (True, False), (128, 1), (True, False), (0, 1, 2), overlap
    ):
        yield replace(
            base, clone=clone, alignment=a, fp8=fp8, num_bias=bias, previous_event=event,
            asynchronous=async_, on_comm_stream=comm,
        )  # fmt: skip


def draw(spec: Spec, ranks: int, only: int | None = None) -> list[Sent]:
    """Inputs of every rank, or of one."""
    import torch

    from ascendkit.testing import generator, routing, sub_seed
    from ep_comm.reference import Sent

    sent = []
    for rank in range(ranks) if only is None else (only,):
        own = sub_seed(spec.seed, "ep_comm", rank)
        counts = spec.counts
        t = counts[rank % len(counts)] if counts else max(0, spec.tokens - rank)
        g = generator(own)
        x = torch.randn(t, spec.hidden, generator=g).to(torch.bfloat16)
        idx = routing(
            spec.routing, t, spec.num_topk, spec.num_experts, own, num_ranks=ranks
        ).contiguous()
        idx[torch.rand(t, spec.num_topk, generator=g) < spec.masked] = -1
        weights = torch.rand(t, spec.num_topk, generator=g).masked_fill_(idx < 0, 0.0)
        sf = None
        if spec.fp8:
            x = x.to(torch.float8_e4m3fn)
            packs = -(-spec.hidden // FP8_BLOCK)
            # Column-major, with rows padded: any strides must do.
            sf = torch.rand(packs, t + t % 2, generator=g).T[:t]
        sent.append(Sent(x, idx, sf, weights))
    return sent


def expert_output(spec: Spec, rank: int, rows: int, hidden: int) -> torch.Tensor:
    """bf16 rows of a rank's experts."""
    return _wide((rows, hidden), spec.seed, "experts", rank)


def bias_of(spec: Spec, rank: int, rows: int) -> tuple[torch.Tensor, ...]:
    """Biases of a rank, as many as the case wants."""
    shape = (rows, spec.hidden)
    return tuple(_wide(shape, spec.seed, f"bias {i}", rank) for i in range(spec.num_bias))


def _wide(shape: tuple[int, int], *key: Any) -> torch.Tensor:
    """bf16 over 28 binades: sums of equal magnitudes are exact and would hide their order."""
    import torch

    from ascendkit.testing import generator, sub_seed, wide

    return wide(shape, generator(sub_seed(*key)), torch.bfloat16, -14, 14)
