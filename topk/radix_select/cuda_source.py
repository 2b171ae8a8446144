"""The CUDA text behind a TileLang program: files of gpu/, and the entry that the program calls.

TileLang has no words for what these do: bulk copies that complete on an mbarrier of the caller's,
barriers of a part of a CTA, packed compares of 16-bit types, memory of other CTAs of a cluster.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

HERE = Path(__file__).parent / "gpu"
SHARED = ("device", "keys", "row", "output")
"""What every kernel of topk includes."""

ENTRY = """
__device__ __forceinline__ void ak_select(
    void* shared, const void* input, const void* begin, const void* end, const void* draws,
    const void* offset, const void* pages, void* values, void* indices, int rows, int row_len,
    int misaligned, int topk, int order, int flags, int page_size, int value_fill, long long stride,
    long long values_stride, long long indices_stride, long long pages_stride,
    long long index_fill) {
  const ak::Arguments a = {
      input, (const int*)begin, (const int*)end, (const int*)draws, (const int*)offset,
      (const int*)pages, values, indices, rows, row_len, misaligned, topk, order, flags, page_size,
      (unsigned)value_fill, stride, values_stride, indices_stride, pages_stride, index_fill};
  CALL(shared, a);
}
"""


@cache
def files(*names: str) -> str:
    """Files of gpu/, one after another."""
    return "\n".join((HERE / f"{name}.cuh").read_text() for name in names)
