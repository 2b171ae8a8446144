// The short vectors of SIMT code (float2, uint4, half2, ...) with lane-wise operators.
#pragma once

#include "ak/float8.h"

namespace ak {
template <class T, int N, size_t ALIGN>
struct Vec;
template <class T, size_t ALIGN>
struct alignas(ALIGN) Vec<T, 1, ALIGN> {
  T x;
};
template <class T, size_t ALIGN>
struct alignas(ALIGN) Vec<T, 2, ALIGN> {
  T x, y;
};
template <class T, size_t ALIGN>
struct alignas(ALIGN) Vec<T, 3, ALIGN> {
  T x, y, z;
};
template <class T, size_t ALIGN>
struct alignas(ALIGN) Vec<T, 4, ALIGN> {
  T x, y, z, w;
};

template <class V>
struct VecTraits : std::false_type {};
template <class T, int N, size_t A>
struct VecTraits<Vec<T, N, A>> : std::true_type {
  using elem = T;
  static constexpr int lanes = N;
};
template <class V>
inline auto* lanes_of(V& v) {
  return reinterpret_cast<typename VecTraits<std::remove_const_t<V>>::elem*>(
      const_cast<std::remove_const_t<V>*>(&v));
}

#define AK_VEC_OP(OP)                                                                 \
  template <class T, int N, size_t A>                                                 \
  inline Vec<T, N, A> operator OP(Vec<T, N, A> a, Vec<T, N, A> b) {                   \
    Vec<T, N, A> r;                                                                   \
    for (int i = 0; i < N; ++i) lanes_of(r)[i] = T(lanes_of(a)[i] OP lanes_of(b)[i]); \
    return r;                                                                         \
  }                                                                                   \
  template <class T, int N, size_t A>                                                 \
  inline Vec<T, N, A>& operator OP## = (Vec<T, N, A> & a, Vec<T, N, A> b) {           \
    return a = a OP b;                                                                \
  }
AK_VEC_OP(+)
AK_VEC_OP(-)
AK_VEC_OP(*)
AK_VEC_OP(/)
AK_VEC_OP(%)
AK_VEC_OP(&)
AK_VEC_OP(|)
AK_VEC_OP(^)
AK_VEC_OP(<<)
AK_VEC_OP(>>)
#undef AK_VEC_OP
template <class T, int N, size_t A>
inline Vec<T, N, A> operator-(Vec<T, N, A> a) {
  for (int i = 0; i < N; ++i) lanes_of(a)[i] = T(-lanes_of(a)[i]);
  return a;
}
template <class T, int N, size_t A>
inline Vec<T, N, A> operator~(Vec<T, N, A> a) {
  for (int i = 0; i < N; ++i) lanes_of(a)[i] = T(~lanes_of(a)[i]);
  return a;
}
}  // namespace ak

#define AK_SMALL_VECTORS(ELEM, STEM)                                          \
  using STEM##1 = ak::Vec<ELEM, 1, sizeof(ELEM)>;                             \
  using STEM##2 = ak::Vec<ELEM, 2, 2 * sizeof(ELEM)>;                         \
  using STEM##3 = ak::Vec<ELEM, 3, sizeof(ELEM)>;                             \
  using STEM##4 = ak::Vec<ELEM, 4, 4 * sizeof(ELEM)>;                         \
  inline STEM##2 make_##STEM##2(ELEM x, ELEM y) { return {x, y}; }            \
  inline STEM##3 make_##STEM##3(ELEM x, ELEM y, ELEM z) { return {x, y, z}; } \
  inline STEM##4 make_##STEM##4(ELEM x, ELEM y, ELEM z, ELEM w) { return {x, y, z, w}; }
AK_SMALL_VECTORS(float, float)
AK_SMALL_VECTORS(int8_t, char)
AK_SMALL_VECTORS(uint8_t, uchar)
AK_SMALL_VECTORS(int16_t, short)
AK_SMALL_VECTORS(uint16_t, ushort)
AK_SMALL_VECTORS(int32_t, int)
AK_SMALL_VECTORS(uint32_t, uint)
AK_SMALL_VECTORS(long long, longlong)
AK_SMALL_VECTORS(unsigned long long, ulonglong)
#undef AK_SMALL_VECTORS

using half2 = ak::Vec<half, 2, 4>;
using bfloat16x2_t = ak::Vec<bfloat16_t, 2, 4>;
using float8_e4m3x2_t = ak::Vec<float8_e4m3_t, 2, 2>;
using float8_e5m2x2_t = ak::Vec<float8_e5m2_t, 2, 2>;

namespace cce {
struct dim3 {
  uint32_t x = 1, y = 1, z = 1;
  dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
};
}  // namespace cce
