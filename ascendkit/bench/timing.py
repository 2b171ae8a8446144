"""How long a call takes: device time from graphs and events, host time from a counter.

Device method: a graph holds one call per input and output set, so that a call finds its data where
a first use would find it; the graph is replayed for at least 15 ms, seven times over. Small kernels
are otherwise hidden by the host, which needs 10 to 30 us to issue one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ascendkit.errors import bad_value, unknown

Call = Callable[[], Any]

MIN_MS = 15.0
REPEATS = 7
GRAPH_MS = 1.0
"""A shorter graph would show the gap between two replays."""
MAX_NODES = 4096
HOST_LIMIT_MS = 2000.0
"""Host calls can be slow: after this long, three repeats are enough."""

_graph_class = {"cuda": "CUDAGraph", "npu": "NPUGraph"}


@dataclass(frozen=True)
class Timing:
    """Microseconds for one call: quantiles over ``repeats`` means of ``calls`` calls each."""

    p20: float
    p50: float
    p80: float
    repeats: int
    calls: int
    method: str


def do_bench(
    calls: Sequence[Call], device: str, *, min_ms: float = MIN_MS, repeats: int = REPEATS
) -> Timing:
    """Time one call, given as closures over distinct input and output sets.

    Args:
        calls: the same work on different memory; used in turn.
        device: ``cuda``, ``npu`` (device time) or ``cpu`` (host time).
        min_ms: least duration of one repeat.
        repeats: measurements the quantiles are taken over.

    The npu branch follows the interface torch-npu shares with torch.cuda.
    """
    if not calls:
        raise bad_value("calls", 0, "at least one call", 1)
    if device == "cpu":
        return _host(calls, min_ms, repeats)
    if device not in _graph_class:
        raise unknown("device", device, ("cpu", *_graph_class))
    return _device(calls, device, min_ms, repeats)


def quantile(values: Sequence[float], q: float) -> float:
    """Linear-interpolated quantile."""
    ranked = sorted(values)
    at = q * (len(ranked) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (at - low)


def _timing(us: Sequence[float], calls: int, method: str) -> Timing:
    p20, p50, p80 = (quantile(us, q) for q in (0.2, 0.5, 0.8))
    return Timing(p20, p50, p80, len(us), calls, method)


def _device(calls: Sequence[Call], device: str, min_ms: float, repeats: int) -> Timing:
    import torch

    accel = torch.get_device_module(device)
    for call in calls:
        call()
    accel.synchronize()
    try:
        graph, nodes, kept = _captured(calls, accel, device, 1)
        once = _elapsed_ms(accel, graph.replay, 1)
        rounds = min(math.ceil(GRAPH_MS / max(once, 1e-5)), max(MAX_NODES // len(calls), 1))
        if rounds > 1:
            del graph, kept
            graph, nodes, kept = _captured(calls, accel, device, rounds)
        replay, method = graph.replay, f"{device} graph of {nodes} calls"
    except RuntimeError as e:
        # Some work cannot be captured, such as a size read back from the device.
        accel.synchronize()
        reason = str(e).strip().splitlines()[0]
        replay, nodes = (lambda: [call() for call in calls]), len(calls)
        method = f"{device} events around eager calls (not captured: {reason})"
    replays = max(1, math.ceil(min_ms / max(_elapsed_ms(accel, replay, 1), 1e-3)))
    ms = [_elapsed_ms(accel, replay, replays) for _ in range(repeats)]
    return _timing([m * 1e3 / (replays * nodes) for m in ms], replays * nodes, method)


def _captured(
    calls: Sequence[Call], accel: Any, device: str, rounds: int
) -> tuple[Any, int, list[Any]]:
    """A graph of every call, ``rounds`` times. Results stay alive, so no two share memory."""
    graph = getattr(accel, _graph_class[device])()
    with accel.graph(graph):
        kept = [call() for _ in range(rounds) for call in calls]
    return graph, rounds * len(calls), kept


def _elapsed_ms(accel: Any, work: Call, times: int) -> float:
    start, end = accel.Event(enable_timing=True), accel.Event(enable_timing=True)
    work()
    accel.synchronize()
    start.record()
    for _ in range(times):
        work()
    end.record()
    accel.synchronize()
    return float(start.elapsed_time(end))


def _host(calls: Sequence[Call], min_ms: float, repeats: int) -> Timing:
    calls[0]()
    once = _host_us(calls, 1)
    per_repeat = max(1, math.ceil(min_ms * 1e3 / max(once, 1e-2)))
    affordable = int(HOST_LIMIT_MS * 1e3 / (once * per_repeat))
    us = [_host_us(calls, per_repeat) for _ in range(max(3, min(repeats, affordable)))]
    return _timing(us, per_repeat, "host perf_counter")


def _host_us(calls: Sequence[Call], times: int) -> float:
    start = time.perf_counter_ns()
    for i in range(times):
        calls[i % len(calls)]()
    return (time.perf_counter_ns() - start) / 1e3 / times
