// Cross-lane reductions. Sums are a binary tree over neighbouring lanes, rounded at each level.
#pragma once

#include <limits>

#include "ak/compare.h"

namespace ak {
template <class T>
struct Widen {
  using type = T;
};
template <>
struct Widen<int8_t> {
  using type = int16_t;
};
template <>
struct Widen<uint8_t> {
  using type = uint16_t;
};
template <>
struct Widen<int16_t> {
  using type = int32_t;
};
template <>
struct Widen<uint16_t> {
  using type = uint32_t;
};

template <class T>
inline T tree_sum(T* v, int n) {
  for (; n > 1; n /= 2)
    for (int i = 0; i < n / 2; ++i)
      v[i] = T(lane::add<compute_of<T>>(compute_of<T>(v[2 * i]), compute_of<T>(v[2 * i + 1])));
  return v[0];
}
// The value no element loses against; what a reduction over no lanes returns.
template <class T, bool MAX>
inline T identity() {
  if constexpr (std::is_integral_v<T>)
    return MAX ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  else
    return T(MAX ? -INFINITY : INFINITY);
}
// Best active lane of [from, from + n); the first of equals; a NaN wins.
template <class T, bool MAX>
inline int best_lane(const Reg<T>& a, const vector_bool& m, int from, int n) {
  int best = -1;
  for (int i = from; i < from + n; ++i) {
    if (!active<T>(m, i)) continue;
    if (best < 0) {
      best = i;
      continue;
    }
    compute_of<T> x = a.lane[i], y = a.lane[best];
    if (y != y) continue;
    if (x != x || (MAX ? x > y : x < y)) best = i;
  }
  return best;
}
template <class T, bool MAX>
inline void reduce_best(Reg<T>& dst, const Reg<T>& a, const vector_bool& m) {
  Reg<T> r{};
  int best = best_lane<T, MAX>(a, m, 0, Reg<T>::N);
  r.lane[0] = best < 0 ? identity<T, MAX>() : a.lane[best];
  uint_of<T> index = uint_of<T>(best < 0 ? 0 : best);
  std::memcpy(&r.lane[1], &index, sizeof(T));
  dst = r;
}
template <class T, bool MAX>
inline void reduce_best_blocks(Reg<T>& dst, const Reg<T>& a, const vector_bool& m) {
  constexpr int per_block = kBlockBytes / sizeof(T);
  Reg<T> r{};
  for (int b = 0; b < kRegBytes / kBlockBytes; ++b) {
    int best = best_lane<T, MAX>(a, m, b * per_block, per_block);
    r.lane[b] = best < 0 ? identity<T, MAX>() : a.lane[best];
  }
  dst = r;
}
}  // namespace ak

// Lane 0 receives the result; 8- and 16-bit integers sum at twice their width.
template <class D, class T>
AK_INSTR void asc_reduce_sum(ak::Reg<D>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  static_assert(std::is_same_v<D, typename ak::Widen<T>::type>, "sum widens 8/16-bit integers");
  D v[ak::Reg<T>::N];
  for (int i = 0; i < ak::Reg<T>::N; ++i) v[i] = ak::active<T>(m, i) ? D(a.lane[i]) : D{};
  ak::Reg<D> r{};
  r.lane[0] = ak::tree_sum(v, ak::Reg<T>::N);
  dst = r;
  AK_OUT("asc_reduce_sum", dst, sizeof(D));
}
// Lane 0 receives the value, lane 1 the bits of its index.
template <class T>
AK_INSTR void asc_reduce_max(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  ak::reduce_best<T, true>(dst, a, m);
  AK_OUT("asc_reduce_max", dst, sizeof(T));
}
template <class T>
AK_INSTR void asc_reduce_min(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  ak::reduce_best<T, false>(dst, a, m);
  AK_OUT("asc_reduce_min", dst, sizeof(T));
}

// One result per 32-byte block, packed into the lowest lanes.
template <class T>
AK_INSTR void asc_reduce_sum_datablock(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  constexpr int per_block = ak::kBlockBytes / sizeof(T);
  T v[ak::Reg<T>::N];
  for (int i = 0; i < ak::Reg<T>::N; ++i) v[i] = ak::active<T>(m, i) ? a.lane[i] : T{};
  ak::Reg<T> r{};
  for (int b = 0; b < ak::kRegBytes / ak::kBlockBytes; ++b)
    r.lane[b] = ak::tree_sum(v + b * per_block, per_block);
  dst = r;
  AK_OUT("asc_reduce_sum_datablock", dst, sizeof(T));
}
template <class T>
AK_INSTR void asc_reduce_max_datablock(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  ak::reduce_best_blocks<T, true>(dst, a, m);
  AK_OUT("asc_reduce_max_datablock", dst, sizeof(T));
}
template <class T>
AK_INSTR void asc_reduce_min_datablock(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  ak::reduce_best_blocks<T, false>(dst, a, m);
  AK_OUT("asc_reduce_min_datablock", dst, sizeof(T));
}
// Sums of neighbours, packed into the lower half.
template <class T>
AK_INSTR void asc_pair_reduce_sum(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  ak::Reg<T> r{};
  using C = ak::compute_of<T>;
  for (int i = 0; i < ak::Reg<T>::N / 2; ++i) {
    C x = ak::active<T>(m, 2 * i) ? C(a.lane[2 * i]) : C(0);
    C y = ak::active<T>(m, 2 * i + 1) ? C(a.lane[2 * i + 1]) : C(0);
    r.lane[i] = T(ak::lane::add<C>(x, y));
  }
  dst = r;
  AK_OUT("asc_pair_reduce_sum", dst, sizeof(T));
}
