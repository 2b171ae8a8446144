"""Rows that shared memory holds: which shapes, how a CTA is laid out, and its CUDA text.

The whole row lies in one CTA (many short rows) or in the CTAs of a cluster (few long ones), so that
digits of the k-th best are counted without reading anything twice. See docs/topk.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from topk.radix_select.cuda_format import FORMATS
from topk.radix_select.cuda_source import ENTRY, SHARED, files

FILES = ("resident_device", "resident_layout", "resident_load", "resident_pivot", "resident")
LARGEST = 232448
"""Bytes of shared memory a CTA may have."""


@dataclass(frozen=True)
class Resident:
    """``ak::Piece`` of gpu/resident_layout.cuh.

    Args:
        threads: of a CTA.
        elements: of a row that a CTA holds.
        topk: the most it selects.
        cluster: CTAs that share a row.
        log_bins: log2 of the bins of a digit.
        residents: CTAs an SM must be able to hold (bounds the registers).
    """

    threads: int
    elements: int
    topk: int
    cluster: int
    log_bins: int
    residents: int

    def kind(self, dtype: str) -> str:
        """The C++ type."""
        numbers = (self.threads, self.elements, self.topk, self.cluster, self.log_bins)
        return f"ak::Piece<ak::{FORMATS[dtype][0]}, {', '.join(map(str, numbers))}>"

    def shared_bytes(self, size: int) -> int:
        """Shared memory of a CTA for elements of ``size`` bytes: ``sizeof(ak::Resident)``."""
        row = (self.elements * size // 16 + 8) // 8 * 128
        bins, best = 4 << self.log_bins, self.topk * (4 + size)
        room = max(bins, best) if self.cluster == 1 else 2 * bins + best
        ranked = 16 if self.cluster == 1 else 12 * self.topk
        return -(-(row + room + 512 * self.cluster + 128 + 32 + ranked) // 16) * 16

    def ctas(self, rows: int, num_sms: int) -> int:
        """CTAs of a launch."""
        return rows * self.cluster

    def source(self, dtype: str) -> str:
        """All of the kernel."""
        kind, size = self.kind(dtype), FORMATS[dtype][1]
        fits = f"static_assert(sizeof(ak::Resident<{kind}>) <= {self.shared_bytes(size)});\n"
        return files(*SHARED, *FILES) + fits + ENTRY.replace("CALL", f"ak::select_resident<{kind}>")


TIERS = (1024, 2048, 4096)
"""Largest topk of a kernel."""
ALONE = {
    2: ((1024, ((None, 128, 10, 12),)),
        (4096, ((132, 512, 10, 2), (528, 256, 10, 5), (None, 128, 10, 12))),
        (16384, ((528, 512, 10, 2), (None, 256, 10, 5)))),
    4: ((2048, ((132, 256, 10, 4), (None, 128, 10, 8))),
        (8192, ((132, 512, 11, 2), (None, 256, 11, 4)))),
}  # fmt: skip
"""By bytes of an element: longest row, then (most rows, threads, log2 of bins, CTAs an SM)."""
CLUSTERS = ((16, 7, (1 << 17) + 1), (8, 15, 1 << 15), (4, 32, 1 << 14))
"""CTAs that share a row, most rows an H200 has at work at once, and bytes of a row that pay."""
SHARES = (8192, 32768)
"""Elements of a CTA in a cluster; longer pieces get all there is."""


@lru_cache(maxsize=1024)
def fit(rows: int, row_len: int, topk: int, size: int) -> Resident | None:
    """The layout for a shape, or None where it does not fit or has too many long rows."""
    tier = next(t for t in TIERS if topk <= t)
    return _shared(rows, row_len, tier, size) or _alone(rows, row_len, tier, size)


def _alone(rows: int, row_len: int, tier: int, size: int) -> Resident | None:
    for elements, choices in ALONE[size]:
        if row_len <= elements:
            _, threads, log_bins, residents = next(
                c for c in choices if c[0] is None or rows <= c[0]
            )
            made = Resident(threads, elements, tier, 1, log_bins, 1)
            most = LARGEST // (made.shared_bytes(size) + 1024)
            return replace(made, residents=min(residents, most))
    return None


def _shared(rows: int, row_len: int, tier: int, size: int) -> Resident | None:
    for cluster, most_rows, least in CLUSTERS:
        if rows > most_rows or row_len * size < least:
            continue
        piece = (-(-row_len * size // 16 // cluster) + 1) * 16 // size
        spare = LARGEST - Resident(512, 0, tier, cluster, 11, 1).shared_bytes(size)
        for elements in (*SHARES, spare // 1024 * 1024 // size):
            if piece <= elements and elements * size <= spare:
                return Resident(512, elements, tier, cluster, 11, 1)
    return None
