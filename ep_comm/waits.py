"""Whether the host waits for the device: dispatch without CPU sync, its handle, and combine.

Two witnesses. Torch raises where one of its operations would wait. And a kernel that sleeps is
queued first: a host that has issued everything while it still sleeps cannot have waited for what
comes behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ep_comm.buffer import EPBuffer
from ep_comm.spec import Spec, draw

SLEEP_CYCLES = 1 << 29
"""A quarter of a second at 2 GHz; the calls between take a few milliseconds."""


def host_waits(group: Any, device: str, seed: int) -> tuple[int, list[str]]:
    """How many calls were watched on this rank, and what is wrong with them; collective.

    On CPUs host and device are one: the calls run, and nobody watches.
    """
    spec = Spec(tokens=64, hidden=512, num_topk=6, num_experts=8 * group.size, seed=seed)
    buffer = EPBuffer(group, None, spec.tokens, spec.hidden, spec.num_topk, explicitly_destroy=True)
    calls, found = 0, []
    for fp8 in (False, True):
        for expand in (False, True):
            issue = _calls(buffer, replace(spec, fp8=fp8), expand)
            # Kernels are compiled, and memory is taken, in a first round.
            issue()
            try:
                with watched(device) as asleep:
                    calls += issue()
                    if not asleep():
                        found.append(f"fp8 {fp8}, expanded {expand}: the device was waited for")
            except RuntimeError as e:
                # A call that raised half-way ends the buffer, on all ranks.
                return calls, [*found, f"fp8 {fp8}, expanded {expand}: {e}"]
    buffer.destroy()
    return calls, found


def _calls(buffer: EPBuffer, spec: Spec, expand: bool) -> Any:
    """Issues a dispatch without CPU sync, one with its handle, and a combine; says how many."""
    mine = draw(spec, buffer.size, buffer.rank)[0]
    x: Any = mine.x.to(buffer.device)
    if mine.sf is not None:
        x = (x, mine.sf.contiguous().to(buffer.device))
    idx = mine.topk_idx.to(buffer.device)
    assert mine.topk_weights is not None
    weights = mine.topk_weights.to(buffer.device)

    def issue() -> int:
        got = buffer.dispatch(
            x, idx, weights, num_experts=spec.num_experts, do_cpu_sync=False, do_expand=expand
        )
        again = buffer.dispatch(x, handle=got[3], do_expand=expand)
        rows = again[0][0] if spec.fp8 else again[0]
        buffer.combine(rows.bfloat16(), got[3], got[2])
        return 3

    return issue


@contextmanager
def watched(device: str) -> Iterator[Any]:
    """Torch raises where it would wait for ``device``; gives a function that tells whether a kernel
    queued at the start still runs. On CPUs it always tells so."""
    if device == "cpu":
        yield lambda: True
        return
    import torch

    accel: Any = torch.get_device_module(device)
    accel.synchronize()
    before = accel.get_sync_debug_mode()
    accel._sleep(SLEEP_CYCLES)
    woken = accel.Event()
    woken.record()
    accel.set_sync_debug_mode("error")
    try:
        yield lambda: not woken.query()
    finally:
        accel.set_sync_debug_mode(before)
        accel.synchronize()
