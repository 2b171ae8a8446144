// Lane-wise arithmetic and logic. Inactive lanes of the result are zero.
#pragma once

#include "ak/indexed.h"
#include "ak/lane_math.h"

#define AK_BINARY(NAME, EXPR)                                                   \
  template <class T>                                                            \
  AK_INSTR void NAME(ak::Reg<T>& dst, const ak::Reg<T>& a, const ak::Reg<T>& b, \
                     const vector_bool& m) {                                    \
    using C [[maybe_unused]] = ak::compute_of<T>;                               \
    ak::map2(dst, a, b, m, [](C x, C y) { return EXPR; });                      \
    AK_OUT(#NAME, dst, sizeof(T));                                              \
  }
// The scalar is first rounded to the lane type.
#define AK_SCALAR(NAME, EXPR)                                                                \
  template <class T, class S>                                                                \
  AK_INSTR void NAME(ak::Reg<T>& dst, const ak::Reg<T>& a, S scalar, const vector_bool& m) { \
    using C = ak::compute_of<T>;                                                             \
    C y = C(ak::scalar_to<T>(scalar));                                                       \
    ak::map1(dst, a, m, [y](C x) { return EXPR; });                                          \
    AK_OUT(#NAME, dst, sizeof(T));                                                           \
  }
#define AK_UNARY(NAME, EXPR)                                                       \
  template <class T>                                                               \
  AK_INSTR void NAME(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) { \
    using C [[maybe_unused]] = ak::compute_of<T>;                                  \
    ak::map1(dst, a, m, [](C x) { return EXPR; });                                 \
    AK_OUT(#NAME, dst, sizeof(T));                                                 \
  }

AK_BINARY(asc_add, ak::lane::add<C>(x, y))
AK_BINARY(asc_sub, ak::lane::sub<C>(x, y))
AK_BINARY(asc_mul, ak::lane::mul<C>(x, y))
AK_BINARY(asc_div, ak::lane::div<C>(x, y))
AK_BINARY(asc_max, ak::lane::max<C>(x, y))
AK_BINARY(asc_min, ak::lane::min<C>(x, y))
AK_BINARY(asc_abs_sub, ak::lane::abs<C>(ak::lane::sub<C>(x, y)))
AK_BINARY(asc_prelu, x >= 0 ? x : ak::lane::mul<C>(x, y))

AK_SCALAR(asc_add_scalar, ak::lane::add<C>(x, y))
AK_SCALAR(asc_mul_scalar, ak::lane::mul<C>(x, y))
AK_SCALAR(asc_max_scalar, ak::lane::max<C>(x, y))
AK_SCALAR(asc_min_scalar, ak::lane::min<C>(x, y))
AK_SCALAR(asc_leakyrelu, x >= 0 ? x : ak::lane::mul<C>(x, y))

AK_UNARY(asc_neg, ak::lane::neg<C>(x))
AK_UNARY(asc_abs, ak::lane::abs<C>(x))
AK_UNARY(asc_relu, ak::lane::relu<C>(x))
AK_UNARY(asc_sqrt, std::sqrt(x))
AK_UNARY(asc_exp, std::exp(x))
AK_UNARY(asc_ln, std::log(x))
#undef AK_UNARY
#undef AK_SCALAR
#undef AK_BINARY

template <class T>
AK_INSTR void asc_exp_sub(ak::Reg<T>& dst, const ak::Reg<T>& a, const ak::Reg<T>& b,
                          const vector_bool& m) {
  static_assert(ak::is_float<T>, "asc_exp_sub takes float lanes");
  ak::map2(dst, a, b, m, [](auto x, auto y) { return std::exp(x - y); });
  AK_OUT("asc_exp_sub", dst, sizeof(T));
}

// Bitwise logic ignores the lane's number format.
#define AK_LOGIC(NAME, EXPR)                                                                       \
  template <class T>                                                                               \
  AK_INSTR void NAME(ak::Reg<T>& dst, const ak::Reg<T>& a, const ak::Reg<T>& b,                    \
                     const vector_bool& m) {                                                       \
    using U = ak::uint_of<T>;                                                                      \
    auto& d = reinterpret_cast<ak::Reg<U>&>(dst);                                                  \
    ak::map2(d, reinterpret_cast<const ak::Reg<U>&>(a), reinterpret_cast<const ak::Reg<U>&>(b), m, \
             [](U x, U y) { return U(EXPR); });                                                    \
    AK_OUT(#NAME, dst, sizeof(T));                                                                 \
  }
AK_LOGIC(asc_and, x& y)
AK_LOGIC(asc_or, x | y)
AK_LOGIC(asc_xor, x ^ y)
#undef AK_LOGIC
template <class T>
AK_INSTR void asc_not(ak::Reg<T>& dst, const ak::Reg<T>& a, const vector_bool& m) {
  using U = ak::uint_of<T>;
  auto& d = reinterpret_cast<ak::Reg<U>&>(dst);
  ak::map1(d, reinterpret_cast<const ak::Reg<U>&>(a), m, [](U x) { return U(~x); });
  AK_OUT("asc_not", dst, sizeof(T));
}

// Shift amounts are per lane, signed, of the data's width; or one scalar.
#define AK_SHIFT(NAME, F)                                                                         \
  template <class T, class N>                                                                     \
  AK_INSTR void NAME(ak::Reg<T>& dst, const ak::Reg<T>& a, const ak::Reg<N>& by,                  \
                     const vector_bool& m) {                                                      \
    static_assert(sizeof(T) == sizeof(N), "one shift amount a lane");                             \
    ak::Reg<T> r;                                                                                 \
    for (int i = 0; i < ak::Reg<T>::N; ++i) {                                                     \
      T v = ak::lane::F<T>(a.lane[i], int64_t(std::make_signed_t<N>(by.lane[i])));                \
      r.lane[i] = ak::active<T>(m, i) ? v : T(0);                                                 \
    }                                                                                             \
    dst = r;                                                                                      \
    AK_OUT(#NAME, dst, sizeof(T));                                                                \
  }                                                                                               \
  template <class T, class S>                                                                     \
  AK_INSTR void NAME##_scalar(ak::Reg<T>& dst, const ak::Reg<T>& a, S by, const vector_bool& m) { \
    int64_t n = int64_t(by);                                                                      \
    ak::map1(dst, a, m, [n](T x) { return ak::lane::F<T>(x, n); });                               \
    AK_OUT(#NAME "_scalar", dst, sizeof(T));                                                      \
  }
AK_SHIFT(asc_shiftleft, shl)
AK_SHIFT(asc_shiftright, shr)
#undef AK_SHIFT

// Fused multiply-adds read the destination.
template <class T, class S>
AK_INSTR void asc_axpy(ak::Reg<T>& dst, const ak::Reg<T>& a, S scalar, const vector_bool& m) {
  using C = ak::compute_of<T>;
  C s = C(ak::scalar_to<T>(scalar));
  ak::map2(dst, a, ak::Reg<T>(dst), m, [s](C x, C d) { return ak::lane::fma<T, C>(x, s, d); });
  AK_OUT("asc_axpy", dst, sizeof(T));
}
template <class T>
AK_INSTR void asc_madd(ak::Reg<T>& dst, const ak::Reg<T>& a, const ak::Reg<T>& b,
                       const vector_bool& m) {
  using C = ak::compute_of<T>;
  ak::map3(dst, ak::Reg<T>(dst), a, b, m,
           [](C d, C x, C y) { return ak::lane::fma<T, C>(d, x, y); });
  AK_OUT("asc_madd", dst, sizeof(T));
}
template <class T>
AK_INSTR void asc_mula(ak::Reg<T>& dst, const ak::Reg<T>& a, const ak::Reg<T>& b,
                       const vector_bool& m) {
  using C = ak::compute_of<T>;
  ak::map3(dst, ak::Reg<T>(dst), a, b, m,
           [](C d, C x, C y) { return ak::lane::fma<T, C>(x, y, d); });
  AK_OUT("asc_mula", dst, sizeof(T));
}
