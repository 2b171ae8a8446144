"""Tensors of a checked launch: moved, for the launch, to memory of their own between guard bytes.

In torch's storages tensors lie next to each other, so that a stray write of a few bytes lands in
another tensor and in no report. A checked launch gets copies instead. Each copy keeps the address
modulo 512, the strides and the bytes between the rows; tensors that share bytes share a copy, so
aliasing stays what it is; up to 4 KiB of the storage on each side come along, so that reading them
gives what it would give. Guard bytes follow on both sides. Afterwards the bytes of the tensors that
were written are copied back, and no others: a checked launch damages nothing outside its tensors.

Left in place, with bounds but without guards: tensors in shared memory (another process may be
looking), and all tensors of a kernel that reads addresses from memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascendkit.emulator import fresh, tensors
from ascendkit.emulator.device import VIEW_DIMS, Region, View

if TYPE_CHECKING:
    import torch

GUARD = 4096
ALIGN = 512
PATTERN = 0xA5


@dataclass(frozen=True)
class Extent:
    """Where the bytes of a tensor lie: ``run`` bytes at ``base``, repeated along ``dims`` of (size,
    stride in bytes), strides falling. One run from first to last byte if rows overlap."""

    base: int
    run: int
    dims: tuple[tuple[int, int], ...]

    @property
    def end(self) -> int:
        """Past the last byte."""
        return self.base + self.run + sum((size - 1) * stride for size, stride in self.dims)


def extent(tensor: torch.Tensor) -> Extent:
    """The bytes of ``tensor``."""
    item = tensor.element_size()
    if tensor.numel() == 0:
        return Extent(tensor.data_ptr(), 0, ())
    steps = sorted(
        ((n, s * item) for n, s in zip(tensor.shape, tensor.stride()) if n > 1 and s),
        key=lambda d: d[1],
    )
    run, dims = item, list[tuple[int, int]]()
    for size, stride in steps:
        if not dims and stride == run:
            run *= size
        elif dims and stride == dims[-1][0] * dims[-1][1]:
            dims[-1] = (dims[-1][0] * size, dims[-1][1])
        else:
            dims.append((size, stride))
    reach = run
    for size, stride in dims:
        if stride < reach:
            return Extent(tensor.data_ptr(), sum((n - 1) * s for n, s in dims) + run, ())
        reach += (size - 1) * stride
    if len(dims) > VIEW_DIMS:
        return Extent(tensor.data_ptr(), reach, ())
    return Extent(tensor.data_ptr(), run, tuple(reversed(dims)))


@dataclass(frozen=True)
class Overrun:
    """Bytes outside a tensor that changed: the first at ``offset`` from its first byte."""

    name: str
    address: int  # in the copy
    offset: int
    distance: int
    changed: int


class _Group:
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


class Guarded:
    """The tensors of one launch, by argument number."""

    def __init__(
        self, arguments: Sequence[tuple[int, str, torch.Tensor]], *, in_place: bool = False
    ) -> None:
        self._groups: list[_Group] = []
        self._address: dict[int, int] = {}
        for numbers, members, stay in _sharing(arguments):
            group = _Group(members, moved=not (stay or in_place))
            self._groups.append(group)
            for number, (*_, e) in zip(numbers, members):
                self._address[number] = e.base - group.low + group.base

    def address(self, number: int) -> int:
        """Where argument ``number`` is during the launch."""
        return self._address[number]

    def regions(self) -> list[Region]:
        """The regions of the launch."""
        return [g.region() for g in self._groups]

    def views(self, first: int) -> list[View]:
        """The views, where the regions are numbered from ``first`` on."""
        return [v for i, g in enumerate(self._groups) for v in g.views(first + i)]

    def copy(self, address: int) -> int:
        """The address in a copy that stands for ``address`` in a caller's tensor."""
        for g in self._groups:
            if g.low <= address < g.low + g.bytes:
                return int(address - g.low + g.base)
        return address

    def locate(self, address: int) -> tuple[str, int]:
        """The tensor at ``address`` in a copy, and the byte of it."""
        for g in self._groups:
            place = address - g.base + g.low
            for name, _, e in g.members:
                if g.base <= address < g.base + g.bytes and e.base <= place < e.end:
                    return name, place - e.base
        return "", address

    def original(self, address: int) -> int:
        """The address in the caller's tensor that ``address`` in a copy stands for."""
        for g in self._groups:
            if g.base - GUARD <= address < g.base + g.bytes + GUARD:
                return int(address - g.base + g.low)
        return address

    def fill(self, poison: int = 0, only: int | None = None) -> None:
        """Copies the tensors in. Bytes that have no value get poison, of region ``only`` alone if
        that is given."""
        for i, g in enumerate(self._groups):
            if g.moved:
                g.fill(poison if only is None or only == i else 0)

    def contents(self, written: Sequence[Any]) -> list[Any]:
        """What is in the copies now, an array of bytes each; None for what is in place or was not
        ``written``."""
        return [
            g.memory.numpy().copy() if g.moved and bits is not None else None
            for g, bits in zip(self._groups, written)
        ]

    def differing(
        self, before: list[Any], written: Sequence[Any], unset: Sequence[Any]
    ) -> list[int]:
        """Addresses of the first byte of each copy that is not as ``before``; bytes that had no
        value and got none do not count, nor those known to have got nothing of use (``unset``), nor
        those outside of the tensors, which are a matter of bounds."""
        import numpy as np

        found = []
        for g, held, bits, known in zip(self._groups, before, written, unset):
            if not g.moved:
                continue
            old, new = g.source.numpy() if held is None else held, g.memory.numpy()
            if fresh.same(old, new):
                continue
            wrong = new != old
            if known is not None:
                wrong &= ~known
            inside = np.zeros(g.bytes, dtype=bool)
            for _, _, e in g.members:
                inside[e.base - g.low : e.end - g.low] = True
            wrong &= inside
            if g.undefined is not None:
                wrong &= ~g.undefined if bits is None else g.undefined <= bits
            if wrong.any():
                found.append(g.base + int(wrong.argmax()))
        return found

    def overruns(self) -> list[Overrun]:
        """Bytes around and between tensors that the launch changed, one entry a tensor."""
        found = []
        for g in self._groups:
            places = sorted(g.changed()) if g.moved else []
            if not places:
                continue
            # Of two tensors in one storage the nearer one is meant.
            name, _, e = min(g.members, key=lambda m: _distance(m[2], g.low + places[0])[0])
            address = g.low + places[0]
            distance, _ = _distance(e, address)
            offset = address - e.base
            found.append(Overrun(name, g.base + places[0], offset, distance, len(places)))
        return found

    def finish(self, contents: list[Any], written: Sequence[Any]) -> None:
        """Copies tensors that were written back to where they belong."""
        import torch

        for g, held, bits in zip(self._groups, contents, written):
            fresh.define(g.members[0][1], g.low, bits)
            if held is None:
                continue
            for *_, e in g.members:
                g.rows(g.source, e).numpy()[...] = g.rows(torch.from_numpy(held), e).numpy()

    def undefined_outputs(
        self, written: Sequence[Any]
    ) -> Iterator[tuple[str, torch.Tensor, Any, bool]]:
        """Tensors with bytes that had no value and got none: name, tensor, a mask, in the tensor's
        shape, of such elements, and whether anything was written."""
        import numpy as np

        for g, bits in zip(self._groups, written):
            if g.undefined is None or (bits is not None and bits.all()):
                continue
            empty = g.undefined if bits is None else g.undefined > bits
            if not empty.any():
                continue
            for name, tensor, e in g.members:
                item = tensor.element_size()
                shape = (*tensor.shape, item)
                strides = (*(s * item for s in tensor.stride()), 1)
                yield (
                    name,
                    tensor,
                    np.lib.stride_tricks.as_strided(
                        empty[e.base - g.low :], shape, strides, writeable=False
                    ).any(-1),
                    bits is not None,
                )


def _distance(e: Extent, address: int) -> tuple[int, bool]:
    if address < e.base:
        return e.base - address, True
    return (address - e.end + 1, False) if address >= e.end else (0, False)


def _sharing(
    arguments: Sequence[tuple[int, str, Any]],
) -> Iterator[tuple[list[int], list[tuple[str, Any, Extent]], bool]]:
    """Arguments grouped by shared bytes: numbers, members, and whether they must stay in place."""
    groups: list[tuple[list[int], list[tuple[str, Any, Extent]]]] = []
    for number, name, tensor in arguments:
        tensors.region(name, tensor)  # refuses what is not on the CPU
        mine = (name, tensor, extent(tensor))
        touching = [g for g in groups if any(_overlap(mine[2], m[2]) for m in g[1])]
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


def _overlap(a: Extent, b: Extent) -> bool:
    if a.end <= b.base or b.end <= a.base or not a.run or not b.run:
        return False
    if not a.dims and not b.dims:
        return True
    import torch

    low = min(a.base, b.base)
    size = max(a.end, b.end) - low
    hit = torch.zeros(size, dtype=torch.bool)
    for e, mark in ((a, True), (b, None)):
        sizes = [n for n, _ in e.dims] + [e.run]
        rows = hit.as_strided(sizes, [s for _, s in e.dims] + [1], e.base - low)
        if mark is None:
            return bool(rows.any())
        rows.fill_(True)
    return False
