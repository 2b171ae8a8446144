"""What TileLang has no words for, as CUDA functions: streaming loads, packed compares, REDUX.

A half block is 64 bytes a thread, 16 words in registers. Bit ``j`` of a hit mask stands for one
element: 16-bit types put the lower halves of the words at bits 0 to 15 and the upper halves at 16
to 31, so that a mask costs one compare and one three-input logic instruction for two elements;
float32 has a bit a word.
"""

COMMON = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ unsigned int ak_sum(unsigned int n) {
  return __reduce_add_sync(0xffffffffu, n);
}
__device__ __forceinline__ void ak_add(int* p, unsigned int n) { atomicAdd(p, (int)n); }
__device__ __forceinline__ void ak_most(int* p, unsigned int n) {
  n = __reduce_max_sync(0xffffffffu, n);
  if (threadIdx.x % 32 == 0) atomicMax((unsigned int*)p, n);
}
__device__ __forceinline__ int ak_take(int* p, int n) { return atomicAdd(p, n); }
__device__ __forceinline__ void ak_stream(const void* p, unsigned int* x) {
  // Read once: L1 has no use for it.
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "l"(p));
}
"""

PICK = r"""
__device__ __forceinline__ unsigned int ak_word(const unsigned int* x, unsigned int j) {
  unsigned int y[4];
  #pragma unroll
  for (int u = 0; u < 4; ++u) {
    unsigned int a = j & 1 ? x[4 * u + 1] : x[4 * u], b = j & 1 ? x[4 * u + 3] : x[4 * u + 2];
    y[u] = j & 2 ? b : a;
  }
  unsigned int a = j & 4 ? y[1] : y[0], b = j & 4 ? y[3] : y[2];
  return j & 8 ? b : a;
}
"""

NARROW = r"""
__device__ __forceinline__ unsigned int ak_pick(const unsigned int* x, unsigned int j) {
  return ak_word(x, j) >> (j & 16) & 0xffffu;
}
__device__ __forceinline__ void ak_load(const short* x0, long long origin, int i, int first,
                                        int last, int edge, unsigned int* x) {
  const short* at = x0 + origin + i;
  if (!edge || (i >= first && i + 8 <= last)) {
    ak_stream(at, x);
  } else if (i + 8 > first && i < last) {
    #pragma unroll
    for (int w = 0; w < 4; ++w) {
      unsigned int low = 0, high = 0;
      if (i + 2 * w >= first && i + 2 * w < last) low = (unsigned short)at[2 * w];
      if (i + 2 * w + 1 >= first && i + 2 * w + 1 < last) high = (unsigned short)at[2 * w + 1];
      x[w] = low | (high << 16);
    }
  }
}
__device__ __forceinline__ unsigned int ak_valid(int i, int first, int last) {
  if (i >= first && i + 8 <= last) return 0x000f000fu;
  if (i + 8 <= first || i >= last) return 0;
  unsigned int m = 0;
  for (int w = 0; w < 4; ++w) {
    if (i + 2 * w >= first && i + 2 * w < last) m |= 1u << w;
    if (i + 2 * w + 1 >= first && i + 2 * w + 1 < last) m |= 0x10000u << w;
  }
  return m;
}
__device__ __forceinline__ unsigned int ak_hits(const unsigned int* x, unsigned int t) {
  unsigned int m = 0;
  #pragma unroll
  for (int w = 0; w < 4; ++w) m |= ak_above(x[w], t) & (0x00010001u << w);
  return m;
}
"""

ABOVE = {
    "bfloat16": r"""
__device__ __forceinline__ unsigned int ak_above(unsigned int x, unsigned int t) {
  return __hgtu2_mask(*(__nv_bfloat162*)&x, *(__nv_bfloat162*)&t);
}
""",
    "float16": r"""
__device__ __forceinline__ unsigned int ak_above(unsigned int x, unsigned int t) {
  return __hgtu2_mask(*(__half2*)&x, *(__half2*)&t);
}
""",
}

WIDE = r"""
__device__ __forceinline__ unsigned int ak_pick(const unsigned int* x, unsigned int j) {
  return ak_word(x, j);
}
__device__ __forceinline__ void ak_load(const int* x0, long long origin, int i, int first, int last,
                                        int edge, unsigned int* x) {
  const int* at = x0 + origin + i;
  if (!edge || (i >= first && i + 4 <= last)) {
    ak_stream(at, x);
  } else if (i + 4 > first && i < last) {
    #pragma unroll
    for (int w = 0; w < 4; ++w) x[w] = i + w >= first && i + w < last ? at[w] : 0;
  }
}
__device__ __forceinline__ unsigned int ak_valid(int i, int first, int last) {
  if (i >= first && i + 4 <= last) return 0xfu;
  if (i + 4 <= first || i >= last) return 0;
  unsigned int m = 0;
  for (int w = 0; w < 4; ++w) if (i + w >= first && i + w < last) m |= 1u << w;
  return m;
}
__device__ __forceinline__ unsigned int ak_hits(const unsigned int* x, unsigned int t) {
  unsigned int m = 0;
  #pragma unroll
  for (int w = 0; w < 4; ++w) m |= !(__uint_as_float(x[w]) <= __uint_as_float(t)) ? 1u << w : 0u;
  return m;
}
"""


ALL = r"""
__device__ __forceinline__ unsigned int ak_all(const unsigned int* x, unsigned int t) {
  unsigned int m = 0;
  #pragma unroll
  for (int v = 0; v < 4; ++v) m |= ak_hits(x + 4 * v, t) << (4 * v);
  return m;
}
"""


def source(dtype: str) -> str:
    """The functions a kernel of ``dtype`` calls."""
    return COMMON + PICK + (WIDE if dtype == "float32" else ABOVE[dtype] + NARROW) + ALL
