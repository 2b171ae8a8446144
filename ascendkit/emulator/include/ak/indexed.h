// Gather and scatter between the unified buffer and registers, and register permutation by index.
#pragma once

#include "ak/store.h"

// dst[i] = base[index[i]]; 8-bit sources widen to 16-bit lanes. Inactive lanes are zero and do not
// access memory.
template <class D, class T, class I>
AK_INSTR void asc_gather(ak::Reg<D>& dst, const T* base, const ak::Reg<I>& index,
                         const vector_bool& m) {
  static_assert(sizeof(D) == sizeof(T) || (sizeof(T) == 1 && sizeof(D) == 2),
                "gather keeps the element width, or widens 8 bits to 16");
  static_assert(ak::Reg<D>::N <= ak::Reg<I>::N, "one index a destination lane");
  ak::Reg<D> r{};
  for (int i = 0; i < ak::Reg<D>::N; ++i) {
    // An 8-bit gather is masked at the source width: lane i of the wide result by group i.
    bool on = ak::active<D>(m, i);
    if (!on) continue;
    const T* p = base + ak::uint_of<I>(index.lane[i]);
    AK_TOUCH(p, sizeof(T), false);
    r.lane[i] = D(*p);
  }
  dst = r;
  AK_OUT("asc_gather", dst, sizeof(D));
}

// dst[i] = src[index[i]], the index taken modulo the lane count.
template <class T, class I>
AK_INSTR void asc_gather(ak::Reg<T>& dst, const ak::Reg<T>& src, const ak::Reg<I>& index) {
  static_assert(sizeof(T) == sizeof(I), "one index a lane, of the same width");
  ak::Reg<T> r;
  for (int i = 0; i < ak::Reg<T>::N; ++i)
    r.lane[i] = src.lane[ak::uint_of<I>(index.lane[i]) % ak::Reg<T>::N];
  dst = r;
  AK_OUT("asc_gather.register", dst, sizeof(T));
}

// Eight 32-byte blocks at byte offsets taken from the first eight index lanes.
template <class T>
AK_INSTR void asc_gather_datablock(ak::Reg<T>& dst, const T* base, const vector_u32& index,
                                   const vector_bool& m) {
  constexpr int per_block = ak::kBlockBytes / sizeof(T);
  ak::Reg<T> r{};
  for (int i = 0; i < ak::Reg<T>::N; ++i) {
    if (!ak::active<T>(m, i)) continue;
    const T* p = reinterpret_cast<const T*>(reinterpret_cast<const char*>(base) +
                                            index.lane[i / per_block]) +
                 i % per_block;
    if (i % per_block == 0) ak::check_align("asc_gather_datablock", p, 32);
    AK_TOUCH(p, sizeof(T), false);
    r.lane[i] = *p;
  }
  dst = r;
  AK_OUT("asc_gather_datablock", dst, sizeof(T));
}
template <class T>
AK_INSTR void asc_gather_datablock(ak::Reg<T>& dst, const T* base, const vector_u32& index) {
  asc_gather_datablock(dst, base, index, ak::make_mask<uint8_t>([](int) { return true; }));
}

// base[index[i]] = src[i] for active lanes, in lane order: the highest lane wins a collision.
template <class T, class I>
AK_INSTR void asc_scatter(T* base, const ak::Reg<T>& src, const ak::Reg<I>& index,
                          const vector_bool& m) {
  AK_STORED("asc_scatter", src, sizeof(T));
  // 8-bit data carries one element per 16-bit index.
  constexpr int lanes = ak::Reg<T>::N < ak::Reg<I>::N ? ak::Reg<T>::N : ak::Reg<I>::N;
  constexpr int step = ak::Reg<T>::N / lanes;
  for (int i = 0; i < lanes; ++i) {
    if (!ak::active<T>(m, i * step)) continue;
    T* p = base + ak::uint_of<I>(index.lane[i]);
    *p = stored.lane[i * step];
    AK_TOUCH(p, sizeof(T), true);
  }
}
