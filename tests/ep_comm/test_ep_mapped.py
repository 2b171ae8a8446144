"""Memory that processes of a host map: where they meet, and when they do not."""

from __future__ import annotations

import os
import threading

from ep_comm.transport import mapped as module
from ep_comm.transport.mapped import mapped


def together(ranks, num_bytes=4096):
    """``mapped`` of every rank, in threads that gather by a barrier."""
    blobs, meet = [b""] * ranks, threading.Barrier(ranks)
    made = [None] * ranks

    def one(rank):
        def gather(blob):
            blobs[rank] = blob
            meet.wait()
            got = list(blobs)
            meet.wait()
            return got

        made[rank] = mapped(rank, num_bytes, gather)

    threads = [threading.Thread(target=one, args=(r,)) for r in range(ranks)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return made


def test_stores_reach_peers_and_no_file_stays():
    import torch

    before = set(os.listdir("/dev/shm"))
    a, b, c = together(3)
    a.put(2, 5, torch.arange(4, dtype=torch.uint8))
    b.peer(0)[7] = 9
    assert c.local[5:9].tolist() == [0, 1, 2, 3] and a.local[7] == 9
    assert not int(b.local.sum()) and a.num_bytes == 4096
    assert set(os.listdir("/dev/shm")) == before


def test_ranks_of_different_hosts_do_not_meet(monkeypatch):
    hosts = iter(f"host {i}" for i in range(100))
    monkeypatch.setattr(module, "_host", lambda: next(hosts))
    assert together(2) == [None, None]


def test_a_host_without_room(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "FOLDER", tmp_path / "absent")
    assert together(2) == [None, None]
