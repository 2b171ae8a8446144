"""Ranks that die or come late: the others say who and where, in time, and leave nothing behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ep_comm.launch import Pool, RankError, available


def told(backend: str, kind: str, folder: Path, near: int | None = None) -> list[str]:
    reason = available(backend)
    if reason:
        pytest.skip(f"{backend}: {reason}")
    pool = Pool(backend, 4, near, survive=True)
    try:
        pool.outcomes("tests.ep_comm.ranks:fault", [(kind, str(folder))] * 4, 60.0)
    finally:
        pool.close()
    return [(folder / f"{r}.txt").read_text() for r in (0, 2, 3)]


@pytest.mark.mpi
@pytest.mark.parametrize(("backend", "near"), [("mpi", None), ("mpi", 2), ("gloo", None)])
def test_a_killed_rank(tmp_path, backend, near):
    before = set(os.listdir("/dev/shm"))
    for text in told(backend, "killed", tmp_path, near):
        first, second, seconds = text.splitlines()
        assert first.startswith(("PeerTimeout: ", "PeerFailed: ")), text
        assert "in combine" in first and "rank 1 (" in first and "round" in first, text
        assert second.startswith("PeerFailed: EPBuffer.barrier: this buffer lost a peer before")
        assert float(seconds) < 15, text
        if backend == "mpi":
            assert "no heartbeat" in first, text
    deadline = time.monotonic() + 10
    while left := set(os.listdir("/dev/shm")) - before:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.mpi
def test_a_late_rank(tmp_path):
    start = time.monotonic()
    for text in told("mpi", "late", tmp_path):
        first = text.splitlines()[0]
        assert "PeerTimeout" in first and "rank 1 (alive" in first, text
        assert "last call dispatch" in first, text
    assert time.monotonic() - start < 60


@pytest.mark.mpi
def test_the_rank_that_failed_is_the_one_that_is_reported(monkeypatch):
    reason = available("mpi")
    if reason:
        pytest.skip(f"mpi: {reason}")
    # The rank that waits for it is not waited for.
    monkeypatch.setattr("ep_comm.launch.AFTER_ERROR_S", 1.0)
    start = time.monotonic()
    with Pool("mpi", 2) as pool, pytest.raises(RankError, match="rank 1: KeyError: 'alone'"):
        pool.run("tests.ep_comm.test_ep_faults:alone", [()] * 2)
    assert time.monotonic() - start < 60


def alone(group):
    from tests.ep_comm.ranks import buffer

    b = buffer(group, num_cpu_timeout_secs=300)
    if group.rank == 1:
        raise KeyError("alone")
    b.barrier()
