"""Time dispatch and combine on the ranks of a group, beside plain copies and all-to-all.

Works on any backend. On CPUs the figures are those of memory and of processes that take turns: they
say what the code costs, and nothing about a link.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ep_comm.buffer import EPBuffer
from ep_comm.contract import Spec, draw

if TYPE_CHECKING:
    import torch

Call = Callable[[], Any]


@dataclass(frozen=True)
class Shape:
    """What is sent.

    Args:
        tokens, hidden, num_topk, num_experts: of every rank.
        fp8: FP8 rows with a float32 scale per 128 values, instead of bf16.
        routing: kind, as in :mod:`ascendkit.testing`.
        deferred: time main kernel and epilogue apart.
    """

    tokens: int = 4096
    hidden: int = 7168
    num_topk: int = 8
    num_experts: int = 256
    fp8: bool = False
    routing: str = "uniform"
    repeats: int = 5
    seed: int = 0


def measure(group: Any, shape: Shape) -> list[dict[str, Any]]:
    """One record a measured thing.

    ``us`` is one call of ranks that start together, ``in_row_us`` a call of many that are issued
    one after the other (what the device needs, where the host is ahead of it). ``dispatch`` and
    ``combine`` are whole calls, into memory that is new to the process; ``cached`` is a dispatch
    with the handle of another; ``copies`` is what dispatch copies on one-sided backends, into
    memory used before; ``memcpy`` as many bytes by one plain copy, ``fresh_copy`` the same into
    new memory; ``all_to_all`` the same rows by all_to_all_single, with sizes known beforehand.
    """
    import torch

    buffer = EPBuffer(
        group, None, shape.tokens, shape.hidden, shape.num_topk, explicitly_destroy=True
    )
    device = buffer.device
    spec = Spec(
        tokens=shape.tokens, hidden=shape.hidden, num_topk=shape.num_topk,
        num_experts=shape.num_experts, fp8=shape.fp8, routing=shape.routing, seed=shape.seed,
        counts=(shape.tokens,),
    )  # fmt: skip
    mine = draw(spec, group.size, group.rank)[0]
    x: Any = mine.x.to(device)
    if mine.sf is not None:
        x = (x, mine.sf.contiguous().to(device))
    idx = mine.topk_idx.to(device)

    def forward() -> Any:
        return buffer.dispatch(x, idx, num_experts=shape.num_experts)

    recv, _, _, handle, _ = forward()
    rows = recv[0] if isinstance(recv, tuple) else recv
    y = rows.to(torch.bfloat16) if shape.fp8 else rows
    calls: dict[str, Call] = {
        "dispatch": forward,
        "cached": lambda: buffer.dispatch(x, handle=handle),
        "combine": lambda: buffer.combine(y, handle),
    }
    row = rows.shape[1] * rows.element_size() + (4 * recv[1].shape[1] if shape.fp8 else 0)
    received = handle.num_recv_tokens
    sent, out, back = _rows(handle)
    one_hop = len(handle.path.hops) == 1
    # A row is written to its receiver and copied to its place: as many bytes, as one copy.
    source = torch.ones(max(received + sent, 1), row, dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)
    calls["memcpy"] = lambda: target.copy_(source)
    calls["fresh_copy"] = source.clone
    if hasattr(buffer.grid.whole, "write_rows") and one_hop:
        calls["copies"] = _copies(handle, x[0] if shape.fp8 else x, target)
    if one_hop and (device != "cpu" or group.backend == "gloo"):
        calls["all_to_all"] = _baseline(buffer, rows, handle)
    moved = {
        "dispatch": (received * row, out * row),
        "cached": (received * row, out * row),
        "combine": (received * 2 * shape.hidden, back * 2 * shape.hidden),
        "memcpy": (len(source) * row, 0),
        "fresh_copy": (len(source) * row, 0),
        "copies": ((sent + received) * rows.shape[1] * rows.element_size(), 0),
        "all_to_all": (received * row, out * row),
    }
    found = []
    for name, call in calls.items():
        us, in_row = timed(buffer, call, shape.repeats), in_a_row(buffer, call, shape.repeats)
        logical, wire = moved[name]
        found.append(
            {"what": name, "rank": group.rank, "us": us, "in_row_us": in_row,
             "logical_bytes": logical, "wire_bytes": wire, "logical_gbs": logical / us / 1e3,
             "wire_gbs": wire / us / 1e3}
        )  # fmt: skip
    buffer.destroy()
    return found


def _rows(handle: Any) -> tuple[int, int, int]:
    """Rows this rank writes in all hops, how many of them to peers, how many it sends back."""
    sent = out = back = 0
    for hop in handle.path.hops:
        me = hop.transport.rank
        own = int(hop.counts[me, me])
        sent += int(hop.counts[me].sum())
        out += int(hop.counts[me].sum()) - own
        back += int(hop.counts[:, me].sum()) - own
    return sent, out, back


def _copies(handle: Any, x: torch.Tensor, target: torch.Tensor) -> Call:
    """Rows into their receivers' memory, and what arrived into an output."""
    import torch

    from ep_comm.transport.base import as_bytes

    hop, plane = handle.path.hops[0], as_bytes(x)
    arrived = torch.zeros((hop.received, plane.shape[1]), dtype=torch.uint8)
    out = torch.zeros_like(arrived)

    def call() -> None:
        hop.transport.write_rows([plane], hop.take, hop.counts)
        out.copy_(arrived)

    return call


def _baseline(buffer: EPBuffer, rows: torch.Tensor, handle: Any) -> Call:
    """The same rows by one all_to_all_single, sizes known beforehand."""
    import torch
    import torch.distributed as dist

    counts = handle.path.hops[0].counts
    sends, receives = counts[buffer.rank].tolist(), counts[:, buffer.rank].tolist()
    width = rows.shape[1] * rows.element_size()
    out = torch.empty((sum(receives), width), dtype=torch.uint8, device=rows.device)
    given = torch.ones((sum(sends), width), dtype=torch.uint8, device=rows.device)
    group = buffer.grid.whole._rows  # type: ignore[attr-defined]
    return lambda: dist.all_to_all_single(out, given, receives, sends, group=group)


def timed(buffer: EPBuffer, call: Call, repeats: int) -> float:
    """Median microseconds on this rank, all ranks starting together."""
    import torch

    times = []
    for _ in range(repeats + 1):
        buffer.barrier()
        if buffer.device == "cpu":
            start = time.perf_counter()
            call()
            times.append((time.perf_counter() - start) * 1e6)
            continue
        accel = torch.get_device_module(buffer.device)
        begin, end = accel.Event(enable_timing=True), accel.Event(enable_timing=True)
        accel.synchronize()
        begin.record()
        call()
        end.record()
        accel.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    # The first touches memory for the first time.
    return sorted(times[1:])[repeats // 2]


def in_a_row(buffer: EPBuffer, call: Call, repeats: int) -> float:
    """Microseconds of a call, of ``repeats`` issued without waiting between them."""
    import torch

    buffer.barrier()
    if buffer.device == "cpu":
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) * 1e6 / repeats
    accel = torch.get_device_module(buffer.device)
    begin, end = accel.Event(enable_timing=True), accel.Event(enable_timing=True)
    accel.synchronize()
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    accel.synchronize()
    return float(begin.elapsed_time(end) * 1e3 / repeats)
