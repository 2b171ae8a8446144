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

from ascendkit.emulator import fresh
from ascendkit.emulator.device import Region, View
from ascendkit.emulator.extents import distance
from ascendkit.emulator.guarded_copy import GUARD, Group, sharing

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Overrun:
    """Bytes outside a tensor that changed: the first at ``offset`` from its first byte."""

    name: str
    address: int  # in the copy
    offset: int
    distance: int
    changed: int


class Guarded:
    """The tensors of one launch, by argument number."""

    def __init__(
        self, arguments: Sequence[tuple[int, str, torch.Tensor]], *, in_place: bool = False
    ) -> None:
        self._groups: list[Group] = []
        self._address: dict[int, int] = {}
        for numbers, members, stay in sharing(arguments):
            group = Group(members, moved=not (stay or in_place))
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
            name, _, e = min(g.members, key=lambda m: distance(m[2], g.low + places[0])[0])
            address = g.low + places[0]
            away, _ = distance(e, address)
            offset = address - e.base
            found.append(Overrun(name, g.base + places[0], offset, away, len(places)))
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
