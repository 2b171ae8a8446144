"""Events and deferred epilogues: what runs when, once, and in which order."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from ep_comm.event import CommStream, EventOverlap, FutureEvent


class Counted:
    def __init__(self, fail: int = 0) -> None:
        self.waits, self.fail = 0, fail

    def wait(self) -> None:
        self.waits += 1
        if self.fail:
            self.fail -= 1
            raise RuntimeError("native wait failed")


def test_the_hook_answers_the_first_wait_only():
    native = Counted()
    event = EventOverlap(native)
    event.register_hook_after_wait(lambda: "rows")
    assert event.wait() == "rows" and event.wait() is None and native.waits == 2


def test_one_hook_at_a_time():
    event = EventOverlap(Counted())
    event.register_hook_after_wait(lambda: 1)
    with pytest.raises(ValueError, match="one at a time"):
        event.register_hook_after_wait(lambda: 2)
    assert event.wait() == 1


def test_a_failing_hook_is_not_tried_again():
    event, ran = EventOverlap(Counted()), []

    def hook():
        ran.append(1)
        raise KeyError("epilogue")

    event.register_hook_after_wait(hook)
    with pytest.raises(KeyError):
        event.wait()
    assert event.wait() is None and ran == [1]


def test_a_hook_may_wait_and_may_name_its_successor():
    event = EventOverlap(Counted())

    def second():
        return "second"

    def first():
        assert event.wait() is None
        event.register_hook_after_wait(second)
        return "first"

    event.register_hook_after_wait(first)
    assert [event.wait(), event.wait(), event.wait()] == ["first", "second", None]


def test_a_failing_wait_keeps_the_hook():
    event = EventOverlap(Counted(fail=1))
    event.register_hook_after_wait(lambda: "kept")
    with pytest.raises(RuntimeError):
        event.wait()
    assert event.wait() == "kept"


def test_released_and_as_a_context():
    native = Counted()
    event = EventOverlap(native, extra_tensors=[1])
    with event(release_handle=True) as inside:
        assert inside is event and native.waits == 0
    assert native.waits == 1 and event.event is None and event.extra_tensors is None
    assert EventOverlap().wait() is None


def test_future_events_raise_what_the_work_raised():
    future: Future[None] = Future()
    future.set_exception(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        EventOverlap(FutureEvent(future)).wait()


def test_a_stream_keeps_its_order():
    stream, done = CommStream("test", "cpu"), []
    events = [EventOverlap(stream.issue(lambda i=i: done.append(i), None)) for i in range(20)]
    stream.inline(lambda: done.append(20))
    for e in events:
        e.wait()
    assert done == list(range(21))
    EventOverlap(stream.event()).wait()
    stream.close()


def test_bias_of_a_deferred_combine_is_read_at_wait(pool):
    assert pool("threads", 2).run("tests.ep_comm.test_ep_event:late_bias", [()] * 2) == [True] * 2


def late_bias(group):
    import torch

    from tests.ep_comm.ranks import E, buffer, tokens

    b = buffer(group)
    x, idx = tokens(group)
    got = b.dispatch(x, idx, num_experts=E)
    bias = torch.zeros_like(x)
    event = b.combine(got[0], got[3], bias=bias, async_with_compute_stream=True,
                      defer_epilogue=True)  # fmt: skip
    bias.copy_(x)
    late, _ = event.wait()
    now = b.combine(got[0], got[3], bias=x)[0]
    b.destroy()
    return torch.equal(late, now)
