"""Everything worth knowing about expert parallelism on the devices of one host, in one run.

Each function runs on every rank of a group. The same code runs on gloo, where its figures are those
of processes that take turns, and serve to test it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ep_comm.buffer import EPBuffer
from ep_comm.contract import Spec, check, draw
from ep_comm.measure import Shape, in_a_row, timed

if TYPE_CHECKING:
    import torch


def specs(ranks: int, seed: int) -> Iterator[Spec]:
    """Cases of the correctness part: formats, layouts, cached and deferred, skew, empty ranks."""
    base = Spec(tokens=65, hidden=512, num_topk=6, num_experts=8 * ranks, alignment=16, seed=seed)
    for fp8 in (False, True):
        yield replace(base, fp8=fp8, num_bias=int(fp8))
        yield replace(base, fp8=fp8, deferred=True, deterministic=True)
    for routing in ("zipf", "one_hot_rank", "one_hot_expert", "empty_ranks"):
        yield replace(base, routing=routing, num_topk=4)
    yield replace(base, counts=(0, 1, 7, 257), masked=0.2)
    yield replace(base, counts=(0,), num_topk=1)
    yield replace(base, multiple=False, cpu_sync=False)
    yield replace(base, cpu_sync=False, num_bias=2)
    yield replace(base, cpu_sync=False, fp8=True, deterministic=True, counts=(65, 0, 1))
    yield replace(base, tokens=32, hidden=7168, num_topk=8, alignment=128, fp8=True)


def faults(group: Any, device: str, cases: Iterable[Spec], limit_s: float) -> tuple[int, list[str]]:
    """Cases that ran before the limit, and what is not bit-equal to the reference on this rank."""
    import torch.distributed as dist

    start, count, found = time.monotonic(), 0, []
    for spec in cases:
        late: list[Any] = [None] * group.size
        dist.all_gather_object(late, time.monotonic() - start > limit_s)
        # All ranks stop at the same case, or none does.
        if any(late):
            break
        found += [f"{spec}: {fault}" for fault in check(group, spec, device)]
        count += 1
    return count, found


def contention(group: Any, shape: Shape, intermediate: int = 2048) -> list[dict[str, Any]]:
    """Dispatch, grouped products and combine: each alone, in a row, and products beside dispatch.

    Products are those of the local experts over the rows that arrive, two of them, in bf16.
    """
    import torch

    buffer = EPBuffer(
        group, None, shape.tokens, shape.hidden, shape.num_topk, explicitly_destroy=True
    )
    device = buffer.device
    spec = Spec(
        tokens=shape.tokens, hidden=shape.hidden, num_topk=shape.num_topk,
        num_experts=shape.num_experts, counts=(shape.tokens,), seed=shape.seed,
    )  # fmt: skip
    mine = draw(spec, group.size, group.rank)[0]
    x, idx = mine.x.to(device), mine.topk_idx.to(device)

    def forward() -> Any:
        return buffer.dispatch(x, idx, num_experts=shape.num_experts, do_expand=True)

    rows, _, _, handle, _ = forward()
    counts = handle.num_recv_tokens_per_expert_list
    share = shape.num_experts // group.size
    up = torch.randn(share, shape.hidden, intermediate, device=device).bfloat16()
    down = torch.randn(share, intermediate, shape.hidden, device=device).bfloat16()

    products = _products(rows, up, down, counts)

    def back() -> Any:
        return buffer.combine(rows, handle)

    beside = _beside(device, products)
    calls: dict[str, Callable[[], Any]] = {
        "dispatch": forward,
        "products": products,
        "combine": back,
        "in a row": lambda: (forward(), products(), back()),
        "products beside dispatch": lambda: beside(forward),
        "products beside combine": lambda: beside(back),
    }
    found = [
        {"what": name, "rank": group.rank, "us": timed(buffer, call, shape.repeats),
         "in_row_us": in_a_row(buffer, call, shape.repeats)}
        for name, call in calls.items()
    ]  # fmt: skip
    buffer.destroy()
    return found


def _products(
    rows: torch.Tensor, up: torch.Tensor, down: torch.Tensor, counts: Sequence[int]
) -> Callable[[], torch.Tensor]:
    """Both products of every expert; one grouped kernel each where torch has it (Hopper)."""
    import torch

    if rows.device.type == "cuda" and hasattr(torch, "_grouped_mm"):
        ends = torch.tensor(counts, device=rows.device).cumsum(0).to(torch.int32)
        mm = torch._grouped_mm
        return lambda: mm(mm(rows, up, offs=ends), down, offs=ends)
    return lambda: torch.cat([(r @ u) @ d for r, u, d in zip(rows.split(counts), up, down)])


def _beside(device: str, work: Callable[[], Any]) -> Callable[[Callable[[], Any]], None]:
    """Run ``work`` on a stream of its own while a call runs on the current one."""
    import torch

    if device == "cpu":
        return lambda call: (work(), call(), None)[2]
    accel = torch.get_device_module(device)
    side = accel.Stream()

    def run(call: Callable[[], Any]) -> None:
        side.wait_stream(accel.current_stream())
        with accel.stream(side) if side is not None else nullcontext():
            work()
        call()
        accel.current_stream().wait_stream(side)

    return run
