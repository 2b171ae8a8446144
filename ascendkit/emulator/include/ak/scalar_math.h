// Scalar math by the names TileLang prints: NAMEf for float32, hNAME for half (computed in
// float32).
#pragma once

#include "ak/simt.h"

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
#if !defined(__USE_GNU)
inline float exp10f(float x) { return float(std::pow(10.0, double(x))); }
#endif

#define AK_HALF_MATH(NAME, EXPR) \
  inline half h##NAME(half v) {  \
    float x = float(v);          \
    return half(float(EXPR));    \
  }
AK_HALF_MATH(sqrt, std::sqrt(x))
AK_HALF_MATH(rsqrt, rsqrtf(x))
AK_HALF_MATH(exp, std::exp(x))
AK_HALF_MATH(exp2, std::exp2(x))
AK_HALF_MATH(exp10, exp10f(x))
AK_HALF_MATH(log, std::log(x))
AK_HALF_MATH(log2, std::log2(x))
AK_HALF_MATH(log10, std::log10(x))
AK_HALF_MATH(log1p, std::log1p(x))
AK_HALF_MATH(tanh, std::tanh(x))
AK_HALF_MATH(tan, std::tan(x))
AK_HALF_MATH(sin, std::sin(x))
AK_HALF_MATH(cos, std::cos(x))
AK_HALF_MATH(atan, std::atan(x))
AK_HALF_MATH(erf, std::erf(x))
AK_HALF_MATH(floor, std::floor(x))
AK_HALF_MATH(ceil, std::ceil(x))
AK_HALF_MATH(fabs, std::fabs(x))
AK_HALF_MATH(round, std::round(x))
AK_HALF_MATH(trunc, std::trunc(x))
#undef AK_HALF_MATH
inline half hatan2(half y, half x) { return half(std::atan2(float(y), float(x))); }

// min and max of the kernel language: any two arithmetic types, or two equal 16-bit floats.
#define AK_MINMAX(NAME, OP)              \
  template <class A, class B>            \
  inline auto NAME(A a, B b) {           \
    if constexpr (std::is_same_v<A, B>)  \
      return a OP b ? a : b;             \
    else {                               \
      using C = decltype(a + b);         \
      return C(a) OP C(b) ? C(a) : C(b); \
    }                                    \
  }
AK_MINMAX(min, <)
AK_MINMAX(max, >)
#undef AK_MINMAX
