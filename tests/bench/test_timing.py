"""Timing: the arithmetic, against a device and a host clock that keep exact time."""

from __future__ import annotations

import time
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from ascendkit.bench import do_bench
from ascendkit.bench.timing import quantile


class Device:
    """Keeps time by counting: a call costs ``us``, in a graph or outside (plus ``launch``)."""

    def __init__(self, us, launch=10.0, refuses=False):
        self.us, self.launch, self.refuses = us, launch, refuses
        self.now, self.capturing, self.graphs = 0.0, None, []
        device = self

        class Graph:
            calls = 0

            def __init__(self):
                device.graphs.append(self)

            def replay(self):
                device.now += self.calls * device.us

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = device.now

            def elapsed_time(self, end):
                return (end.at - self.at) / 1e3

        self.CUDAGraph, self.Event = Graph, Event

    def synchronize(self):
        pass

    @contextmanager
    def graph(self, graph):
        if self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        self.capturing = graph
        yield
        self.capturing = None

    def call(self):
        if self.capturing is None:
            self.now += self.us + self.launch
        else:
            self.capturing.calls += 1
        return object()


@pytest.mark.parametrize("us", [0.9, 7.3, 250.0, 40000.0])
@pytest.mark.parametrize("sets", [1, 2, 48])
def test_graph_time_is_free_of_launch_time(monkeypatch, us, sets):
    device = Device(us)
    monkeypatch.setattr(torch, "get_device_module", lambda name: device)
    got = do_bench([device.call] * sets, "cuda")
    assert (got.p20, got.p50, got.p80) == pytest.approx((us, us, us))
    assert got.repeats == 7 and got.calls * us >= 15e3
    last = device.graphs[-1]
    assert last.calls % sets == 0 and last.calls <= 4096 + sets
    assert last.calls * us >= 1e3 or last.calls >= 4096 - sets
    assert f"graph of {last.calls} calls" in got.method


def test_what_cannot_be_captured_is_timed_eagerly_and_says_so(monkeypatch):
    device = Device(5.0, launch=3.0, refuses=True)
    monkeypatch.setattr(torch, "get_device_module", lambda name: device)
    got = do_bench([device.call] * 2, "cuda")
    assert got.p50 == pytest.approx(8.0)
    assert "eager" in got.method and "not permitted" in got.method and "\n" not in got.method


@pytest.mark.parametrize(
    ("call_ms", "repeats", "calls"), [(2.0, 7, 8), (40.0, 7, 1), (600.0, 3, 1), (5000.0, 3, 1)]
)
def test_host_time_is_the_time_of_a_call(monkeypatch, call_ms, repeats, calls):
    now = [0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])

    def call():
        now[0] += round(call_ms * 1e6)

    got = do_bench([call], "cpu")
    assert got.p20 == got.p50 == got.p80 == pytest.approx(call_ms * 1e3)
    assert (got.repeats, got.calls) == (repeats, calls) and "host" in got.method


def test_bad_arguments():
    with pytest.raises(ValueError, match="nearest: cuda"):
        do_bench([lambda: None], "cud")
    with pytest.raises(ValueError, match="at least one call"):
        do_bench([], "cpu")


def test_quantiles_are_numpys(seed):
    values = np.random.default_rng(seed).random(7)
    for q in (0.0, 0.2, 0.5, 0.8, 1.0):
        assert quantile(list(values), q) == pytest.approx(np.quantile(values, q))
    assert quantile([3.0], 0.8) == 3.0
