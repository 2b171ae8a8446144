"""Rows that stream through shared memory: how a CTA is laid out for a shape, and its CUDA text.

A warp loads blocks of the row into a ring; the others keep what passes a threshold. Where rows are
fewer than SMs, a cluster of CTAs shares a row. See docs/topk.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from topk.radix_select.cuda_format import FORMATS, SHARED_OF_CTA
from topk.radix_select.cuda_source import ENTRY, SHARED, files

FILES = ("layout", "produce", "search", "stream", "select")
BINS_BYTES = 4 * 2048
SMALLEST_BLOCK = 2048
"""Elements; with more in a block a row has fewer of them."""
CAPACITIES = ((512, 3072), (2048, 4096), (4096, 8192))
"""(largest topk, candidates in shared memory)."""
MIN_STAGES = 4
"""Blocks a ring should hold: as many as are looked at before the first threshold, and more."""
MIN_SHARE = 1 << 16
"""Bytes of a row below which another CTA costs more than it saves."""
CLUSTERS = ((8, 15), (4, 32), (2, 66))
"""(CTAs that share a row, most such clusters an H200 of 132 SMs runs at once)."""


@dataclass(frozen=True)
class Layout:
    """``ak::Layout`` of gpu/layout.cuh.

    Args:
        consumers: threads that filter; one warp more loads.
        vectors: 16-byte words of a block a consumer takes.
        capacity: candidates in shared memory.
        cluster: CTAs that share a row.
        residents: CTAs an SM must be able to hold (bounds the registers).
    """

    consumers: int
    vectors: int
    capacity: int
    cluster: int
    residents: int

    @property
    def threads(self) -> int:
        """Of a CTA."""
        return self.consumers + 32

    @property
    def block_bytes(self) -> int:
        """Bytes of a row that are loaded, and filtered, together."""
        return self.consumers * self.vectors * 16

    def stages(self, size: int) -> int:
        """Blocks the ring holds, for elements of ``size`` bytes."""
        return (SHARED_OF_CTA[self.residents] - self._fixed(size)) // (self.block_bytes + 20)

    def shared_bytes(self, size: int) -> int:
        """Shared memory of a CTA, at least ``sizeof(ak::Shared)``."""
        used = self._fixed(size) + self.stages(size) * (self.block_bytes + 20)
        return -(-used // 128) * 128

    def _fixed(self, size: int) -> int:
        bins = BINS_BYTES * (2 if self.cluster > 1 else 1)
        return bins + self.capacity * (4 + size) + 512

    def ctas(self, rows: int, num_sms: int) -> int:
        """CTAs of a launch: all that run at once take the rows in turn, a cluster takes one."""
        return min(rows, self.residents * num_sms) if self.cluster == 1 else rows * self.cluster

    def source(self, dtype: str) -> str:
        """All of the kernel."""
        name, size = FORMATS[dtype]
        numbers = (self.consumers, self.vectors, self.capacity, self.stages(size), self.cluster)
        kind = f"ak::Layout<ak::{name}, {', '.join(map(str, numbers))}>"
        fits = f"static_assert(sizeof(ak::Shared<{kind}>) <= {self.shared_bytes(size)});\n"
        return files(*SHARED, *FILES) + fits + ENTRY.replace("CALL", f"ak::select_rows<{kind}>")


def layout(rows: int, row_len: int, topk: int, size: int, num_sms: int) -> Layout:
    """For elements of ``size`` bytes; measured on an H200 (docs/topk.md)."""
    capacity = next(c for most, c in CAPACITIES if topk <= most)
    for cluster, most in CLUSTERS:
        if rows * 132 <= most * num_sms and row_len * size >= cluster * MIN_SHARE:
            return Layout(512, 2, capacity, cluster, 1)
    threads, residents = (256, 2) if rows > num_sms else (512, 1)
    large = Layout(threads, 4, capacity, 1, residents)
    enough = large.stages(size) >= MIN_STAGES
    return large if enough else Layout(threads, 2, capacity, 1, residents)
