"""What tests run on every rank; the first argument is the rank's group."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import torch

from ascendkit.testing import routing
from ep_comm.buffer import EPBuffer
from ep_comm.contract import Spec, check

T, H, K, E = 16, 256, 4, 32


def checks(group: Any, specs: list[Spec]) -> list[str]:
    """Faults of several cases, in one go."""
    return [f"{s}: {fault}" for s in specs for fault in check(group, s)]


def arrivals(group: Any, spec: Spec, seeds: list[int]) -> list[str]:
    """Faults under several orders of arrival."""
    return checks(group, [replace(spec, arrival_seed=s) for s in seeds])


def buffer(group: Any, **options: Any) -> EPBuffer:
    """A small buffer that is not patient."""
    options = {
        "num_cpu_timeout_secs": 20, "explicitly_destroy": True, "num_allocated_qps": 8, **options
    }  # fmt: skip
    return EPBuffer(group, None, T, H, K, **options)


def tokens(group: Any, count: int = T, hidden: int = H, seed: int = 0) -> tuple[Any, Any]:
    """x and choices of this rank."""
    g = torch.Generator().manual_seed(1000 * seed + group.rank)
    x = torch.randn(count, hidden, generator=g).bfloat16()
    return x, routing("uniform", count, K, E, 1000 * seed + group.rank).contiguous()


def text_of(call: Any) -> tuple[str, str]:
    """Kind and text of what a call raises."""
    try:
        call()
    except Exception as e:
        return type(e).__name__, str(e)
    return "", ""


def refused(group: Any, changes: dict[int, dict[str, Any]]) -> tuple[tuple[str, str], bool]:
    """Dispatch with arguments changed on some ranks; then a right one, which must work."""
    b = buffer(group)
    x, idx = tokens(group)
    right = {"x": x, "topk_idx": idx, "num_experts": E}
    wrong = {**right, **{k: _value(v, right) for k, v in changes.get(group.rank, {}).items()}}
    told = text_of(lambda: b.dispatch(**wrong))
    got = b.dispatch(**right)
    back = b.combine(got[0], got[3])
    b.destroy()
    return told, bool(torch.isfinite(back[0]).all())


def _value(v: Any, right: dict[str, Any]) -> Any:
    return v(right) if callable(v) else v


def handles(group: Any) -> dict[str, tuple[str, str]]:
    """Handles used wrongly."""
    b, other = buffer(group), buffer(group)
    x, idx = tokens(group)
    first = b.dispatch(x, idx, num_experts=E)
    x2, idx2 = tokens(group, seed=1)
    second = b.dispatch(x2, idx2, num_experts=E)
    found = {}
    mine = first if group.rank == 0 else second
    found["two dispatches"] = text_of(lambda: b.combine(mine[0], mine[3]))
    found["routing beside it"] = text_of(lambda: b.dispatch(x, idx2, handle=first[3]))
    found["another buffer"] = text_of(lambda: other.combine(first[0], first[3]))
    found["not a handle"] = text_of(lambda: b.combine(first[0], "handle"))
    if group.rank == 1:
        idx.add_(0)
    found["routing written"] = text_of(lambda: b.combine(first[0], first[3]))
    late = b.dispatch(x2, idx2, num_experts=E, async_with_compute_stream=True, defer_epilogue=True)
    found["pending"] = text_of(lambda: b.combine(second[0], second[3]))
    late.wait()
    found["call"] = text_of(
        lambda: b.barrier() if group.rank == 0 else b.combine(second[0], second[3])
    )
    # And still everything works: the earlier handle too, after a later dispatch.
    b.combine(second[0], second[3])
    other.destroy()
    b.destroy()
    found["destroyed twice"] = text_of(b.destroy)
    found["destroyed"] = text_of(lambda: b.dispatch(x, idx, num_experts=E))
    return found


def steps(group: Any, counts: list[list[int]]) -> bool:
    """Forward and backward rounds on one buffer, with other counts in every step."""
    b = EPBuffer(group, None, max(map(max, counts)), H, K, explicitly_destroy=True)
    good = True
    for step, row in enumerate(counts):
        x, idx = tokens(group, row[group.rank % len(row)], seed=step)
        got = b.dispatch(x, idx, num_experts=E)
        again = b.dispatch(x, handle=got[3])
        back = b.combine(got[0], got[3])[0]
        reached = torch.stack([(idx // (E // group.size) == r).any(1) for r in range(group.size)])
        want = x.float() * reached.sum(0)[:, None]
        good &= torch.equal(got[0], again[0]) and back.shape == x.shape
        good &= bool(((back.float() - want).abs() <= 0.02 * want.abs() + 0.02).all())
    b.destroy()
    return good


def fault(group: Any, kind: str, folder: str) -> None:
    """One rank dies, or is late, in the second call; the others write what they were told."""
    b = buffer(group, num_cpu_timeout_secs=2.0)
    x, idx = tokens(group)
    got = b.dispatch(x, idx, num_experts=E)
    if group.rank == 1:
        if kind == "killed":
            os.kill(os.getpid(), 9)
        time.sleep(6.0)
    start = time.monotonic()
    told = [text_of(lambda: b.combine(got[0], got[3])), text_of(b.barrier)]
    with open(f"{folder}/{group.rank}.txt", "w") as f:
        f.write("\n".join(f"{k}: {t}" for k, t in told) + f"\n{time.monotonic() - start:.1f}\n")


def raises_inside(group: Any) -> tuple[str, str]:
    """One rank fails in the middle of a call; its peers hear why."""
    b = buffer(group)
    x, idx = tokens(group)
    got = b.dispatch(x, idx, num_experts=E)
    if group.rank == 2:
        got[3].path.back = None
    return text_of(lambda: b.combine(got[0], got[3]))
