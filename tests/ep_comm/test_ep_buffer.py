"""A buffer itself: what it can be made of, what it tells, how it ends, and graphs."""

from __future__ import annotations

import pytest
import torch

from ep_comm.launch import RankError
from tests.ep_comm.ranks import E


def test_buffers_that_cannot_be(pool):
    many = pool("threads", 2)
    args = {"num_max_tokens_per_rank": 0, "hidden": 64}
    got = many.outcomes("tests.ep_comm.test_ep_buffer:make", [(args,)] * 2)
    assert all(isinstance(g, RankError) and g.kind == "ValueError" for g in got)
    assert len({g.text for g in got}) == 1
    differ = [({"num_bytes": 1 << 20},), ({"num_bytes": 1 << 21},)]
    got = many.outcomes("tests.ep_comm.test_ep_buffer:make", differ)
    assert {g.text for g in got} == {
        "ranks disagree on num_bytes: 1048576 on rank 0; 2097152 on rank 1"
    }
    for name, value, text in (
        ("num_cpu_timeout_secs", -1, "wanted seconds above 0; nearest legal: 1"),
        ("num_gpu_timeout_secs", "1", "got str, wanted seconds"),
        ("deterministic", "yes", "got str, wanted a bool"),
        ("sl_idx", 16, "got 16, wanted 0 to 15"),
        ("num_allocated_qps", 1025, "wanted 0 to 1024"),
    ):
        wrong = [({"num_bytes": 1 << 20},), ({"num_bytes": 1 << 20, name: value},)]
        got = many.outcomes("tests.ep_comm.test_ep_buffer:make", wrong)
        assert len({g.text for g in got}) == 1 and f"rank 1: {name}: " in got[0].text, got
        assert text in got[0].text
    region = [({"num_bytes": 64, "lb_allocation_plan_or_num_bytes": 1},)] * 2
    got = many.outcomes("tests.ep_comm.test_ep_buffer:make", region)
    assert "lb_allocation_plan_or_num_bytes: got 1" in got[0].text


def make(group, options):
    from ep_comm.buffer import EPBuffer

    EPBuffer(group, **options)


def test_destroy_must_be_announced(pool):
    got = pool("threads", 1).outcomes("tests.ep_comm.test_ep_buffer:quiet", [()])
    assert got[0].kind == "ValueError" and "explicitly_destroy=True" in got[0].text


def quiet(group):
    from ep_comm.buffer import EPBuffer

    EPBuffer(group, 1 << 20).destroy()


def test_buffers_nobody_destroys_are_collected():
    import gc
    import threading
    import time

    from ep_comm.buffer import EPBuffer
    from ep_comm.transport import threads

    before = threading.active_count()
    for _ in range(5):
        threads.run(2, lambda group: EPBuffer(group, None, 16, 64, 2).barrier())
    gc.collect()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert threading.active_count() <= before


def test_what_a_buffer_tells_of_itself(pool, capsys):
    pool("threads", 2).run("tests.ep_comm.test_ep_buffer:told_of_itself", [()] * 2)
    out = capsys.readouterr().out
    assert "rank 0 of 2 (threads, 1 x 2): " in out and "bytes (0.002 GiB), one hop" in out


def told_of_itself(group):
    from tests.ep_comm.ranks import buffer, text_of, tokens

    b = buffer(group)
    b.print_memory_usage()
    assert b.explicitly_destroy and b.main_context.whole.size == 2
    x, idx = tokens(group)
    got = b.dispatch(x, idx, num_experts=E, num_sms=7, num_qps=8)
    assert got[3].num_sms == 8
    b.combine(got[0], got[3], num_sms=3, num_qps=2)
    b.barrier(wait_comm_stream=False, with_cpu_sync=True, sequential=False)
    told = text_of(lambda: b.combine(got[0], got[3], num_qps=9 if group.rank else 0))[1]
    assert told == "rank 1: num_qps: got 9, wanted 0 to 8; nearest legal: 8", told
    told = text_of(lambda: b.barrier(sequential="no" if group.rank else True))[1]
    assert told == "rank 1: sequential: got str, wanted a bool", told
    b.destroy()


def test_nothing_is_captured_in_a_graph(monkeypatch):
    from types import SimpleNamespace

    from ep_comm import checks

    accel = SimpleNamespace(is_current_stream_capturing=lambda: True)
    monkeypatch.setattr(torch, "get_device_module", lambda device: accel)
    with pytest.raises(ValueError, match="got 'a graph being captured'"):
        checks.not_captured("EPBuffer.combine", "cuda")
    checks.not_captured("EPBuffer.combine", "cpu")
    accel.is_current_stream_capturing = lambda: False
    checks.not_captured("EPBuffer.combine", "cuda")
    # A device module that cannot capture.
    monkeypatch.setattr(torch, "get_device_module", lambda device: SimpleNamespace())
    checks.not_captured("EPBuffer.combine", "npu")


def test_a_call_in_a_graph_is_refused_on_every_rank(monkeypatch, pool):
    from ep_comm import checks

    right = checks.not_captured

    def capturing(name, device):
        if device == "graph":
            raise ValueError(f"{name}: captured")
        right(name, device)

    monkeypatch.setattr(checks, "not_captured", capturing)
    got = pool("threads", 2).run("tests.ep_comm.test_ep_buffer:captured", [()] * 2)
    assert got == ["rank 1: EPBuffer.dispatch: captured"] * 2


def captured(group):
    from tests.ep_comm.ranks import buffer, text_of, tokens

    b = buffer(group)
    x, idx = tokens(group)
    if group.rank == 1:
        b.device = "graph"
    told = text_of(lambda: b.dispatch(x, idx, num_experts=E))[1]
    b.device = "cpu"
    got = b.dispatch(x, idx, num_experts=E)
    b.combine(got[0], got[3])
    b.destroy()
    return told
