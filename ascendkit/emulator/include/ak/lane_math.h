// What one lane computes, per element type. Integers wrap; floats follow IEEE in float32.
#pragma once

#include "ak/reg.h"

namespace ak::lane {
template <class T>
using wrap = std::make_unsigned_t<T>;

template <class T>
inline T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(wrap<T>(a) + wrap<T>(b));
  else
    return a + b;
}
template <class T>
inline T sub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(wrap<T>(a) - wrap<T>(b));
  else
    return a - b;
}
template <class T>
inline T mul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(uint64_t(a) * uint64_t(b));
  else
    return a * b;
}
template <class T>
inline T div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return T(-1);
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return sub<T>(0, a);
    return T(a / b);
  } else {
    return a / b;
  }
}
// NaN in, NaN out; -0 orders below +0.
template <class T>
inline T max(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a > b ? a : b;
  else {
    T r = a > b ? a : b;
    r = a == b ? bits_to_float(float_to_bits(a) & float_to_bits(b)) : r;
    return a != a ? a : (b != b ? b : r);
  }
}
template <class T>
inline T min(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a < b ? a : b;
  else {
    T r = a < b ? a : b;
    r = a == b ? bits_to_float(float_to_bits(a) | float_to_bits(b)) : r;
    return a != a ? a : (b != b ? b : r);
  }
}
template <class T>
inline T neg(T a) {
  if constexpr (std::is_integral_v<T>)
    return sub<T>(0, a);
  else
    return -a;
}
template <class T>
inline T abs(T a) {
  if constexpr (std::is_unsigned_v<T>)
    return a;
  else if constexpr (std::is_integral_v<T>)
    return a < 0 ? neg(a) : a;
  else
    return std::fabs(a);
}
template <class T>
inline T relu(T a) {
  if constexpr (std::is_integral_v<T>)
    return a > 0 ? a : T(0);
  else
    return a != a ? a : (a > 0 ? a : T(0));
}
// a * b + c in double, rounded to odd: the product is exact there, two-sum finds the sum's error.
inline double fma_to_odd(float a, float b, float c) {
  double product = double(a) * double(b), sum = product + double(c), part = sum - product;
  double error = (product - (sum - part)) + (double(c) - part);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  bool adjust = error != 0 && !(bits & 1) && std::isfinite(sum);
  bits += adjust ? ((error > 0) == (sum > 0) ? 1 : -1) : 0;
  return std::bit_cast<double>(bits);
}
// One rounding: float32 through fma, the 16-bit floats through steps that round to odd, so that
// only the last one decides ties.
template <class T, class C>
inline T fma(C a, C b, C c) {
  if constexpr (std::is_integral_v<C>)
    return T(add<C>(mul<C>(a, b), c));
  else if constexpr (is_narrow_float<T>) {
    double exact = fma_to_odd(a, b, c);
    float f = float(exact);
    if (double(f) != exact && std::isfinite(f) && !(float_to_bits(f) & 1)) {
      bool outward = std::fabs(double(f)) > std::fabs(exact);
      f = bits_to_float(float_to_bits(f) + (outward ? -1 : 1));
    }
    return T(f);
  } else {
    return __builtin_fmaf(a, b, c);
  }
}
// Amounts of a full width or more shift everything out (sign bits stay for signed right shifts).
template <class T>
inline T shl(T a, int64_t n) {
  constexpr int bits = 8 * sizeof(T);
  return n < 0 || n >= bits ? T(0) : T(wrap<T>(a) << n);
}
template <class T>
inline T shr(T a, int64_t n) {
  constexpr int bits = 8 * sizeof(T);
  if (n < 0 || n >= bits) return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
  return T(a >> n);
}
}  // namespace ak::lane
