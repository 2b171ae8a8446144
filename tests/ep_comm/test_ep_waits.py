"""The watch over host waits, on a device that only pretends: what it reports, what it restores."""

from __future__ import annotations

import pytest
import torch

from ep_comm.waits import host_waits, watched


class Accel:
    """Stands for ``torch.cuda``: asleep until somebody waits for it."""

    def __init__(self) -> None:
        self.mode, self.asleep = 0, False

    def synchronize(self) -> None:
        self.asleep = False

    def get_sync_debug_mode(self) -> int:
        return self.mode

    def set_sync_debug_mode(self, mode: int | str) -> None:
        self.mode = mode

    def _sleep(self, cycles: int) -> None:
        self.asleep = cycles > 0

    def Event(self) -> Event:
        return Event(self)


class Event:
    def __init__(self, accel: Accel) -> None:
        self._accel = accel

    def record(self) -> None:
        pass

    def query(self) -> bool:
        return not self._accel.asleep


@pytest.fixture
def accel(monkeypatch):
    one = Accel()
    monkeypatch.setattr(torch, "get_device_module", lambda kind: one)
    return one


def test_a_host_that_waits_is_seen(accel):
    with watched("cuda") as asleep:
        assert asleep() and accel.mode == "error"
        accel.synchronize()
        assert not asleep()


def test_the_mode_comes_back_after_an_error(accel):
    accel.mode = 1
    with pytest.raises(RuntimeError, match="called a synchronizing operation"), watched("cuda"):
        raise RuntimeError("called a synchronizing operation")
    assert accel.mode == 1


@pytest.mark.mpi
def test_the_calls_run_everywhere(pool, seed):
    for backend in ("threads", "gloo"):
        assert (
            pool(backend, 2).run("ep_comm.waits:host_waits", [("cpu", seed)] * 2) == [(12, [])] * 2
        )


def test_what_raises_becomes_a_sentence(monkeypatch, pool, seed):
    from ep_comm import buffer

    right = buffer.EPBuffer.combine
    seen = []

    def second_time_lost(self, *args, **kw):
        seen.append(1)
        if len(seen) > 1:
            raise RuntimeError("waited in combine")
        return right(self, *args, **kw)

    monkeypatch.setattr(buffer.EPBuffer, "combine", second_time_lost)
    calls, found = pool("threads", 1).run("ep_comm.waits:host_waits", [("cpu", seed)])[0]
    assert calls == 0 and found == ["fp8 False, expanded False: waited in combine"]


def test_it_is_what_multi_runs():
    from ep_comm.commands import multi

    assert multi.host_waits is host_waits
