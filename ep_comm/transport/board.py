"""Where ranks meet: every rank has an inbox with one slot a peer, written by that peer alone.

A slot holds how far the peer is (a sequence number), a heartbeat, its last two blobs, and the text
of its failure. Two blobs are enough: nobody starts round n + 2 before all have read round n.
Waiting is polling with a deadline, so a peer that is late, gone or failed ends in an exception that
names it, never in a hang.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from ep_comm.errors import PeerFailed, PeerTimeout

if TYPE_CHECKING:
    from ep_comm.transport.base import Memory

SEQ, BEAT, FAILED = 0, 8, 16
HEAD = 64
TEXT = 1024
BEAT_S = 0.25
SPINS = 200


def slot_bytes(capacity: int) -> int:
    """Bytes of one slot for blobs of ``capacity`` bytes."""
    return HEAD + TEXT + 2 * (8 + -(-capacity // 64) * 64)


class Board:
    """Gather with a deadline over one-sided memory.

    Args:
        memory: at least ``size * slot_bytes(capacity)`` zeroed bytes a rank.
        capacity: most bytes of a blob.
        timeout_s: how long a peer may be late.

    Attributes:
        waits: seconds the last :meth:`gather` waited for each rank.
    """

    def __init__(self, memory: Memory, capacity: int, timeout_s: float) -> None:
        self._memory, self._capacity, self._timeout = memory, capacity, timeout_s
        self._slot = slot_bytes(capacity)
        self._seq = 0
        self._last = ["nothing yet"] * memory.size
        self._beats = 0
        self.waits = [0.0] * memory.size
        self._inbox = memoryview(memory.local.numpy())
        self._stop = threading.Event()
        self._lock = threading.Lock()
        # The thread holds no reference: a buffer nobody destroys must still be collected.
        self._beat = threading.Thread(
            target=_beating, args=(weakref.ref(self), self._stop), name="ep_comm-beat", daemon=True
        )
        self._beat.start()
        # A heartbeat must not touch memory that the interpreter's exit takes away.
        atexit.register(self._stop.set)

    def gather(self, blob: bytes, what: str) -> list[bytes]:
        """Everyone's blob of this round."""
        if len(blob) > self._capacity:
            raise ValueError(f"ep_comm: a blob of {len(blob)} bytes, wanted <= {self._capacity}")
        self._seq += 1
        at = self._blob_at(self._seq)
        data = len(blob).to_bytes(8, "little") + blob
        for peer in self._others():
            self._put(peer, at, data)
        self._memory.sync()
        for peer in self._others():
            self._put(peer, SEQ, self._seq.to_bytes(8, "little"))
        self._memory.sync()
        self._wait(what)
        found = []
        for peer in range(self._memory.size):
            found.append(blob if peer == self._memory.rank else self._blob(peer))
            self._last[peer] = f"{what} (round {self._seq})"
        return found

    def fail(self, text: str) -> None:
        """Leave the text in every inbox."""
        data = text.encode()[: TEXT - 8]
        for peer in self._others():
            self._put(peer, HEAD, len(data).to_bytes(8, "little") + data)
        self._memory.sync()
        for peer in self._others():
            self._put(peer, FAILED, (1).to_bytes(8, "little"))

    def missed(self, what: str, waited: float, reason: str) -> Exception:
        """What to raise where rows did not arrive: peers that failed, or whose heart stopped."""
        beats = {p: self._word(p, BEAT) for p in self._others()}
        time.sleep(3 * BEAT_S)
        for peer in self._others():
            if self._word(peer, FAILED):
                return PeerFailed(f"rank {peer} left {what}: {self._failure(peer)}")
        gone = [p for p in self._others() if self._word(p, BEAT) == beats[p]]
        told = self._missed(gone, beats, what, waited) if gone else (
            f"rank {self._memory.rank} waited {waited:.1f} s in {what} (round {self._seq}) for a "
            "rank that had entered the call too"
        )  # fmt: skip
        return PeerTimeout(f"{told}; {reason}")

    def close(self) -> None:
        """Stop the heartbeat; the memory is closed by its owner."""
        self._stop.set()
        atexit.unregister(self._stop.set)
        self._beat.join()
        self._inbox.release()

    # -- waiting ----------------------------------------------------------------------------------
    def _wait(self, what: str) -> None:
        start, spins = time.monotonic(), 0
        beats = {p: self._word(p, BEAT) for p in self._others()}
        missing = list(self._others())
        while True:
            self._memory.sync()
            late = [p for p in missing if self._word(p, SEQ) < self._seq]
            for peer in set(missing) - set(late):
                self.waits[peer] = time.monotonic() - start
            missing = late
            if not missing:
                return
            for peer in missing:
                if self._word(peer, FAILED):
                    raise PeerFailed(f"rank {peer} left {what}: {self._failure(peer)}")
            waited = time.monotonic() - start
            if waited > self._timeout:
                raise PeerTimeout(self._missed(missing, beats, what, waited))
            spins += 1
            if spins < SPINS:
                os.sched_yield()
            else:
                time.sleep(min(1e-3, 2e-5 * (spins - SPINS + 1)))

    def _missed(self, missing: list[int], beats: dict[int, int], what: str, waited: float) -> str:
        told = []
        for peer in missing[:8]:
            moved = self._word(peer, BEAT) != beats[peer]
            life = "alive" if moved else "no heartbeat: process gone or stopped"
            told.append(
                f"rank {peer} ({life}; round {self._word(peer, SEQ)}, last call {self._last[peer]})"
            )
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        return (
            f"rank {self._memory.rank} waited {waited:.1f} s in {what} (round {self._seq}, "
            f"limit {self._timeout:g} s) for {', '.join(told)}{more}"
        )

    def beat(self) -> None:
        """Show every peer that this process lives."""
        self._beats += 1
        for peer in self._others():
            self._put(peer, BEAT, self._beats.to_bytes(8, "little"))

    # -- slots ------------------------------------------------------------------------------------
    def _others(self) -> list[int]:
        rank, size = self._memory.rank, self._memory.size
        return [(rank + i) % size for i in range(1, size)]

    def _put(self, peer: int, at: int, data: bytes) -> None:
        import torch

        with self._lock:
            if self._stop.is_set():
                return
            place = self._memory.rank * self._slot + at
            self._memory.put(peer, place, torch.frombuffer(bytearray(data), dtype=torch.uint8))

    def _word(self, peer: int, at: int) -> int:
        begin = peer * self._slot + at
        return int.from_bytes(self._inbox[begin : begin + 8], "little")

    def _blob_at(self, seq: int) -> int:
        return HEAD + TEXT + (seq % 2) * (8 + -(-self._capacity // 64) * 64)

    def _blob(self, peer: int) -> bytes:
        at = self._blob_at(self._seq)
        begin = peer * self._slot + at + 8
        return bytes(self._inbox[begin : begin + self._word(peer, at)])

    def _failure(self, peer: int) -> str:
        begin = peer * self._slot + HEAD + 8
        size = self._word(peer, HEAD)
        return bytes(self._inbox[begin : begin + size]).decode(errors="replace")


def _beating(board: weakref.ref[Board], stop: threading.Event) -> None:
    while not stop.wait(BEAT_S):
        mine = board()
        if mine is None:
            return
        mine.beat()
        del mine
