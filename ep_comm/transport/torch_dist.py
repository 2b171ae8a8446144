"""torch.distributed: gloo on CPUs, NCCL on NVIDIA GPUs, HCCL (torch-npu) on Ascend.

Rows travel by ``all_to_all_single`` as bytes (gloo refuses float8). Counts and checks travel on the
host, also where rows travel by NCCL or HCCL, so that a deadline and a readable error do not depend
on the device library: through mapped memory where all ranks share a host, else by a gloo group.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_value, unknown
from ep_comm.errors import PeerFailed, PeerTimeout
from ep_comm.transport.base import Transport, as_bytes, of_bytes
from ep_comm.transport.board import Board, slot_bytes
from ep_comm.transport.mapped import mapped

if TYPE_CHECKING:
    import numpy as np
    import torch

DEVICE_OF = {"gloo": "cpu", "nccl": "cuda", "hccl": "npu"}
NARROW = 4096
"""Bytes of a row; planes up to it travel together."""
Key = tuple[tuple[int, ...], str, float]
_free: defaultdict[Key, list[Any]] = defaultdict(list)
"""Groups nobody uses. A group that is destroyed leaves its addresses in the store under a name that
the next one over the same ranks takes again, and cannot connect; so groups are kept."""
_made: Counter[tuple[int, ...]] = Counter()
"""Transports by members: each of them counts alike, so the number can name a transport."""


class TorchTransport:
    """A :class:`Transport` over process groups.

    Args:
        ranks: global ranks, in group order.
        backend: gloo, nccl or hccl.
        capacity: most bytes of a blob.
        timeout_s: how long a peer may be late.
    """

    owned = True
    bounded = False
    queued = True
    waited = None

    def __init__(self, ranks: Sequence[int], backend: str, capacity: int, timeout_s: float) -> None:
        import torch.distributed as dist

        self._ranks, self.backend = list(ranks), backend
        self._capacity, self._timeout = capacity, timeout_s
        self.rank, self.size = self._ranks.index(dist.get_rank()), len(self._ranks)
        self.device = DEVICE_OF[backend]
        self._control_key = (tuple(self._ranks), "gloo", timeout_s)
        self._rows_key = (tuple(self._ranks), backend, timeout_s)
        self._control = _group(self._control_key)
        self._rows = self._control if backend == "gloo" else _group(self._rows_key)
        self._store = dist.distributed_c10d._get_default_store()
        members = tuple(self._ranks)
        _made[members] += 1
        self._key = f"ep_comm/{_made[members]}/{'-'.join(map(str, members))}"
        self._round = 0
        self._board: Board | None = None
        meeting = mapped(
            self.rank, self.size * slot_bytes(capacity), lambda b: self._by_gloo(b, "connect")
        )
        if meeting is not None:
            self._board = Board(meeting, capacity, timeout_s)

    def gather(self, blob: bytes, what: str) -> list[bytes]:
        """See :class:`Transport`."""
        if self._board is not None:
            return self._board.gather(blob, what)
        return self._by_gloo(blob, what)

    def _by_gloo(self, blob: bytes, what: str) -> list[bytes]:
        import torch
        import torch.distributed as dist

        self._round += 1
        self._note(what)
        framed = len(blob).to_bytes(8, "little") + blob
        mine = torch.zeros(self._capacity + 8, dtype=torch.uint8)
        mine[: len(framed)] = torch.frombuffer(bytearray(framed), dtype=torch.uint8)
        all_ = torch.empty(self.size * len(mine), dtype=torch.uint8)
        self._guard(what, lambda: dist.all_gather_into_tensor(all_, mine, group=self._control))
        table = all_.view(self.size, -1).numpy()
        sizes = [int.from_bytes(row[:8].tobytes(), "little") for row in table]
        return [row[8 : 8 + size].tobytes() for row, size in zip(table, sizes)]

    def exchange(
        self,
        planes: Sequence[torch.Tensor],
        take: torch.Tensor | None,
        counts: np.ndarray,
        what: str,
    ) -> list[torch.Tensor]:
        """See :class:`Transport`."""
        import torch
        import torch.distributed as dist

        sends, receives = counts[self.rank].tolist(), counts[:, self.rank].tolist()
        sources = [as_bytes(p) for p in planes]
        widths = [s.shape[1] for s in sources]
        # Narrow planes share one message: a collective costs more than their copies.
        narrow = [i for i, w in enumerate(widths) if w <= NARROW]
        if len(narrow) > 1:
            merged = torch.cat([_taken(sources[i], take) for i in narrow], dim=1)
            groups = [(narrow, merged)]
        else:
            groups = [([i], _taken(sources[i], take)) for i in narrow]
        groups += [([i], _taken(s, take)) for i, s in enumerate(sources) if i not in narrow]
        found: list[torch.Tensor] = [s[:0] for s in sources]
        for members, rows in groups:
            got = rows.new_empty((sum(receives), rows.shape[1]))
            # Every rank skips the same planes: widths are agreed and counts are shared.
            if rows.shape[1] and counts.any():
                self._guard(
                    what,
                    lambda got=got, rows=rows: dist.all_to_all_single(
                        got, rows, receives, sends, group=self._rows
                    ),
                )
            for i, part in zip(members, got.split([widths[i] for i in members], dim=1)):
                # One row counts as contiguous whatever its stride: a plane of its own is a copy.
                if len(members) > 1:
                    part = part.clone(memory_format=torch.contiguous_format)
                found[i] = of_bytes(part, planes[i])
        return found

    def split(self, ranks: Sequence[int], num_bytes: int) -> Transport:
        """See :class:`Transport`."""
        members = [self._ranks[r] for r in ranks]
        return TorchTransport(members, self.backend, self._capacity, self._timeout)

    def fail(self, text: str) -> None:
        """Leave the text in the store, where peers that miss this rank look."""
        if self._board is not None:
            self._board.fail(text)
        self._try(lambda: self._store.set(f"{self._key}/fail/{self.rank}", text))

    def close(self) -> None:
        """Leave both groups for the next transport over the same ranks."""
        if self._board is not None:
            self._board.close()
        _free[self._rows_key].append(self._rows)
        if self._control_key != self._rows_key:
            _free[self._control_key].append(self._control)

    # -- who is missing ---------------------------------------------------------------------------
    def _note(self, what: str) -> None:
        self._store.set(f"{self._key}/last/{self.rank}", f"{self._round} {what}")

    def _guard(self, what: str, call: Any) -> None:
        start = time.monotonic()
        try:
            call()
        except RuntimeError as e:
            first = str(e).strip().splitlines()[0][:200]
            raise self._missed(what, time.monotonic() - start, first) from e

    def _missed(self, what: str, waited: float, reason: str) -> Exception:
        if self._board is not None:
            return self._board.missed(what, waited, f"{self.backend}: {reason}")
        late = []
        for peer in range(self.size):
            failure = self._read(f"{self._key}/fail/{peer}")
            if failure:
                return PeerFailed(f"rank {peer} left {what}: {failure}")
            number, _, last = (self._read(f"{self._key}/last/{peer}") or "0 unknown").partition(" ")
            if peer != self.rank and int(number) < self._round:
                late.append(f"rank {peer} (round {number}, last call {last})")
        who = ", ".join(late) or "a rank that had entered the call too"
        return PeerTimeout(
            f"rank {self.rank} waited {waited:.1f} s in {what} (round {self._round}, limit "
            f"{self._timeout:g} s) for {who}; {self.backend}: {reason}"
        )

    def _read(self, key: str) -> str:
        def get() -> str:
            if not self._store.check([key]):
                return ""
            return bytes(self._store.get(key)).decode(errors="replace")

        return str(self._try(get) or "")

    def _try(self, call: Any) -> Any:
        # The store lives in one of the ranks and may be gone with it.
        try:
            return call()
        except Exception:
            return None


class TorchGroup:
    """A process group as what a buffer is built on.

    Args:
        group: a ProcessGroup; the default group if None.
        scaleup_ranks: consecutive ranks of one scale-up domain; LOCAL_WORLD_SIZE if None.
        symmetric: rows go by stores into symmetric memory (NCCL groups of one host); by
            all_to_all_single otherwise.

    Raises:
        ValueError: a backend that is not known, or symmetric memory on another than NCCL.
    """

    def __init__(
        self, group: Any = None, scaleup_ranks: int | None = None, symmetric: bool = False
    ) -> None:
        import os

        import torch.distributed as dist

        backend = str(dist.get_backend(group)).rpartition(":")[2]
        if backend not in DEVICE_OF:
            raise unknown("backend of the process group", backend, DEVICE_OF)
        if symmetric and backend != "nccl":
            raise bad_value("symmetric", True, f"False on {backend}: torch has it for CUDA", False)
        self._symmetric = symmetric
        if backend == "hccl":
            import torch_npu  # noqa: F401
        self.backend, self._ranks = backend, dist.get_process_group_ranks(group or dist.group.WORLD)
        self.rank, self.size = self._ranks.index(dist.get_rank()), len(self._ranks)
        local = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        near = local if self.size % local == 0 else self.size
        self.scaleup_ranks = scaleup_ranks or min(near, self.size)

    def connect(
        self,
        num_bytes: int,
        capacity: int,
        timeout_s: float,
        ranks: Sequence[int] | None = None,
    ) -> Transport:
        """A transport over ``ranks`` (all by default); the library owns the memory."""
        members = range(self.size) if ranks is None else ranks
        if self._symmetric:
            from ep_comm.transport.symmetric import SymmetricTransport

            chosen = [self._ranks[r] for r in members]
            return SymmetricTransport(chosen, self.backend, capacity, timeout_s, num_bytes)
        return TorchTransport([self._ranks[r] for r in members], self.backend, capacity, timeout_s)


def _taken(source: torch.Tensor, take: torch.Tensor | None) -> torch.Tensor:
    return source if take is None else source.index_select(0, take)


def _group(key: Key) -> Any:
    import torch.distributed as dist

    if _free[key]:
        return _free[key].pop()
    ranks, backend, timeout_s = key
    return dist.new_group(
        list(ranks), timedelta(seconds=timeout_s), backend, use_local_synchronization=True
    )
