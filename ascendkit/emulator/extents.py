"""Where the bytes of a tensor lie: runs, repeated along dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascendkit.emulator.device import VIEW_DIMS

if TYPE_CHECKING:
    import torch


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


def distance(e: Extent, address: int) -> tuple[int, bool]:
    if address < e.base:
        return e.base - address, True
    return (address - e.end + 1, False) if address >= e.end else (0, False)


def overlap(a: Extent, b: Extent) -> bool:
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
