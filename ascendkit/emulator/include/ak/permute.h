// Interleaving, packing, squeezing and histograms.
#pragma once

#include "ak/reduce.h"

// The destinations may be the sources.
template <class T>
AK_INSTR void asc_intlv(ak::Reg<T>& d0, ak::Reg<T>& d1, const ak::Reg<T>& a, const ak::Reg<T>& b) {
  constexpr int n = ak::Reg<T>::N;
  T out[2 * n];
  for (int i = 0; i < n; ++i) out[2 * i] = a.lane[i], out[2 * i + 1] = b.lane[i];
  std::memcpy(d0.lane, out, ak::kRegBytes);
  std::memcpy(d1.lane, out + n, ak::kRegBytes);
  AK_OUT("asc_intlv", d0, sizeof(T));
}
template <class T>
AK_INSTR void asc_deintlv(ak::Reg<T>& d0, ak::Reg<T>& d1, const ak::Reg<T>& a,
                          const ak::Reg<T>& b) {
  constexpr int n = ak::Reg<T>::N;
  T in[2 * n];
  std::memcpy(in, a.lane, ak::kRegBytes);
  std::memcpy(in + n, b.lane, ak::kRegBytes);
  for (int i = 0; i < n; ++i) d0.lane[i] = in[2 * i], d1.lane[i] = in[2 * i + 1];
  AK_OUT("asc_deintlv", d0, sizeof(T));
}

namespace ak {
// Low part of every lane, dense in one half of the result; the other half is zero.
template <class D, class T>
inline void pack_lanes(Reg<D>& dst, const Reg<T>& a, int half) {
  static_assert(2 * sizeof(D) == sizeof(T), "packing halves the lane width");
  Reg<D> r{};
  const auto* in = reinterpret_cast<const uint_of<T>*>(a.lane);
  auto* out = reinterpret_cast<uint_of<D>*>(r.lane) + half * Reg<T>::N;
  for (int i = 0; i < Reg<T>::N; ++i) out[i] = uint_of<D>(in[i]);
  dst = r;
}
template <class D, class T>
inline void unpack_lanes(Reg<D>& dst, const Reg<T>& a, int half) {
  static_assert(sizeof(D) == 2 * sizeof(T), "unpacking doubles the lane width");
  Reg<D> r;
  for (int i = 0; i < Reg<D>::N; ++i) r.lane[i] = D(a.lane[half * Reg<D>::N + i]);
  dst = r;
}
}  // namespace ak
#define AK_PACK(NAME, F, HALF)                               \
  template <class D, class T>                                \
  AK_INSTR void NAME(ak::Reg<D>& dst, const ak::Reg<T>& a) { \
    ak::F(dst, a, HALF);                                     \
    AK_OUT(#NAME, dst, sizeof(D));                           \
  }
AK_PACK(asc_pack_to_low, pack_lanes, 0)
AK_PACK(asc_pack_to_high, pack_lanes, 1)
AK_PACK(asc_unpack_lower, unpack_lanes, 0)
AK_PACK(asc_unpack_upper, unpack_lanes, 1)
#undef AK_PACK

namespace ak {
// Active lanes move to the bottom in order, the rest is zero; how many there are.
template <class T>
inline int squeeze_lanes(Reg<T>& dst, const Reg<T>& a, const vector_bool& m) {
  Reg<T> r{};
  int n = 0;
  for (int i = 0; i < Reg<T>::N; ++i)
    if (active<T>(m, i)) r.lane[n++] = a.lane[i];
  dst = r;
  return n;
}
}  // namespace ak
template <class T>
AK_INSTR void asc_squeeze(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  ak::squeeze_lanes(dst, a, m);
  ak::forget_squeezed();
  AK_OUT("asc_squeeze", dst, sizeof(T));
}
// How many active lanes precede each lane.
template <class T>
AK_INSTR void asc_unsqueeze(ak::Reg<T>& dst, const vector_bool& m) {
  static_assert(std::is_integral_v<T>, "asc_unsqueeze counts in integers");
  T n = 0;
  for (int i = 0; i < ak::Reg<T>::N; ++i) {
    dst.lane[i] = n;
    n = T(n + ak::active<T>(m, i));
  }
  AK_OUT("asc_unsqueeze", dst, sizeof(T));
}

namespace ak {
// Adds to dst[j] the active lanes equal to (or, cumulative, at most) first + j.
template <bool CUMULATIVE>
inline void histogram(vector_u16& dst, const vector_u8& a, const vector_bool& m, int first) {
  uint16_t count[256] = {};
  for (int i = 0; i < vector_u8::N; ++i) count[a.lane[i]] = uint16_t(count[a.lane[i]] + m.bit[i]);
  if (CUMULATIVE)
    for (int v = 1; v < 256; ++v) count[v] = uint16_t(count[v] + count[v - 1]);
  for (int j = 0; j < vector_u16::N; ++j) dst.lane[j] = uint16_t(dst.lane[j] + count[first + j]);
}
}  // namespace ak
#define AK_HISTOGRAM(NAME, CUMULATIVE, FIRST)                                     \
  AK_INSTR void NAME(vector_u16& dst, const vector_u8& a, const vector_bool& m) { \
    ak::histogram<CUMULATIVE>(dst, a, m, FIRST);                                  \
    AK_OUT(#NAME, dst, 2);                                                        \
  }
AK_HISTOGRAM(asc_frequency_histogram_bin0, false, 0)
AK_HISTOGRAM(asc_frequency_histogram_bin1, false, 128)
AK_HISTOGRAM(asc_cumulative_histogram_bin0, true, 0)
AK_HISTOGRAM(asc_cumulative_histogram_bin1, true, 128)
#undef AK_HISTOGRAM

// Orders memory accesses inside a vector function; execution here is already in order.
template <class M>
AK_INSTR void asc_mem_bar(M type) {
  AK_UNLESS_MUTATED("asc_mem_bar");
  AK_OUT("asc_mem_bar", type, 1);
}
