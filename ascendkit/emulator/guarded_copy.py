"""One copy, between guard bytes, of the tensors of a launch that share bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ascendkit.emulator import fresh, tensors
from ascendkit.emulator.device import Region, View
from ascendkit.emulator.extents import Extent, extent, overlap

if TYPE_CHECKING:
    import torch

GUARD = 4096
ALIGN = 512
PATTERN = 0xA5


class Group:
    """Tensors that share bytes, and the one copy of them."""

    def __init__(self, members: list[tuple[str, torch.Tensor, Extent]], moved: bool) -> None:
        import torch

        self.members, self.moved = members, moved
        tensor = members[0][1]
        storage = tensor.untyped_storage()
        low, high = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        first, last = min(e.base for *_, e in members), max(e.end for *_, e in members)
        if moved:
            low, high = max(low, first - GUARD), min(high, last + GUARD)
        self.low, self.bytes = low, high - low  # of the original memory
        self.source = torch.empty(0, dtype=torch.uint8).set_(
            storage, low - storage.data_ptr(), (self.bytes,)
        )
        self.undefined = fresh.undefined(tensor, low, self.bytes)
        if not moved:
            self.buffer, self.start, self.base = None, 0, low
            return
        self.buffer = torch.empty(self.bytes + 2 * GUARD + ALIGN, dtype=torch.uint8)
        at = self.buffer.data_ptr() + GUARD
        self.start = GUARD + (first - (at + first - low)) % ALIGN
        self.base = self.buffer.data_ptr() + self.start
        for part, _ in self._around():
            part.fill_(PATTERN)

    @property
    def memory(self) -> torch.Tensor:
        """The bytes that the kernel sees, guards excluded."""
        if self.buffer is None:
            return self.source
        return self.buffer[self.start : self.start + self.bytes]

    @property
    def name(self) -> str:
        return "/".join(dict.fromkeys(name for name, *_ in self.members))

    def region(self) -> Region:
        undefined = 0 if self.undefined is None else self.undefined.ctypes.data
        guard = GUARD if self.moved else 0
        return Region(self.name, self.base, self.bytes, guard, guard, undefined)

    def views(self, number: int) -> Iterator[View]:
        for name, _, e in self.members:
            yield View(name, number, e.base - self.low + self.base, e.run, e.dims)

    def rows(self, memory: torch.Tensor, e: Extent) -> torch.Tensor:
        """The bytes of one member in ``memory``, a row a run."""
        sizes = [size for size, _ in e.dims] + [e.run]
        strides = [stride for _, stride in e.dims] + [1]
        return memory.as_strided(sizes, strides, memory.storage_offset() + e.base - self.low)

    def outside(self) -> Any:
        """A mask of the bytes that belong to no member; None: there are none."""
        import torch

        if sum(e.run for *_, e in self.members) == self.bytes and not self.members[0][2].dims:
            return None
        mask = torch.ones(self.bytes, dtype=torch.bool)
        for *_, e in self.members:
            self.rows(mask, e).fill_(False)
        return mask

    def _around(self) -> tuple[tuple[torch.Tensor, int], ...]:
        """The guard bytes on both sides, with the offsets of their first in the region."""
        assert self.buffer is not None
        end = self.start + self.bytes
        return (self.buffer[: self.start], -self.start), (self.buffer[end:], self.bytes)

    def fill(self, poison: int) -> None:
        """Copies the tensors in; bytes that have no value get poison of that kind."""
        # By numpy: torch's threads wait for each other, which a busy host makes slow.
        memory = self.memory.numpy()
        memory[:] = self.source.numpy()
        if self.undefined is not None:
            fresh.poison(memory, self.undefined, poison)

    def changed(self) -> Iterator[int]:
        """Offsets, from the start of the region, of changed bytes that belong to no tensor."""
        for part, shift in self._around():
            wrong = part != PATTERN
            if bool(wrong.any()):
                yield from (int(i) + shift for i in wrong.nonzero())
        mask = self.outside()
        if mask is not None:
            yield from (int(i) for i in ((self.memory != self.source) & mask).nonzero())


def sharing(
    arguments: Sequence[tuple[int, str, Any]],
) -> Iterator[tuple[list[int], list[tuple[str, Any, Extent]], bool]]:
    """Arguments grouped by shared bytes: numbers, members, and whether they must stay in place."""
    groups: list[tuple[list[int], list[tuple[str, Any, Extent]]]] = []
    for number, name, tensor in arguments:
        tensors.region(name, tensor)  # refuses what is not on the CPU
        mine = (name, tensor, extent(tensor))
        touching = [g for g in groups if any(overlap(mine[2], m[2]) for m in g[1])]
        for g in touching:
            groups.remove(g)
        groups.append(
            (
                [n for g in touching for n in g[0]] + [number],
                [m for g in touching for m in g[1]] + [mine],
            )
        )
    for numbers, members in groups:
        yield numbers, members, any(t.is_shared() or t.numel() == 0 for _, t, _ in members)
