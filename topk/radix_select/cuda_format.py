"""What the CUDA kernels of topk agree on: flags, formats, and how a streaming CTA is laid out."""

from __future__ import annotations

from dataclasses import dataclass

ORDER_NONE, ORDER_VALUE, ORDER_INDEX = 0, 1, 2
HAS_BEGIN, HAS_END, HAS_OFFSET, HAS_PAGES, HAS_VALUES, HAS_WIDE = 1, 2, 4, 8, 16, 32

FORMATS = {"bfloat16": ("Bf16", 2), "float16": ("Fp16", 2), "float32": ("Fp32", 4)}
"""Name in keys.cuh and bytes of an element."""
BINS_BYTES = 4 * 2048
SHARED_OF_CTA = {1: 232448, 2: 115712, 3: 76800}
"""Bytes of shared memory a CTA may have where so many share an SM (228 KiB, 1 KiB of it a CTA)."""


@dataclass(frozen=True)
class Layout:
    """``ak::Layout`` of gpu/layout.cuh.

    Args:
        threads: consumers of a CTA; one warp more loads.
        vectors: 16-byte words of a block a consumer takes.
        capacity: candidates in shared memory.
        cluster: CTAs that share a row.
        residents: CTAs an SM holds.
    """

    threads: int
    vectors: int
    capacity: int
    cluster: int
    residents: int

    @property
    def block_bytes(self) -> int:
        """Bytes of a row that are loaded, and looked at, together."""
        return self.threads * self.vectors * 16

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
