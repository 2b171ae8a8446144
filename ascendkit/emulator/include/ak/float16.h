// half and bfloat16_t: storage, conversions (round to nearest even) and scalar arithmetic.
#pragma once

#include "ak/base.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace ak {

inline float bits_to_float(uint32_t u) { return std::bit_cast<float>(u); }
inline uint32_t float_to_bits(float f) { return std::bit_cast<uint32_t>(f); }

inline float half_bits_to_float(uint16_t h) {
#if defined(__F16C__)
  return _cvtsh_ss(h);
#else
  uint32_t sign = uint32_t(h & 0x8000) << 16, mag = h & 0x7fff;
  if (mag >= 0x7c00) {  // infinity keeps its payload of zero, NaN is quieted
    uint32_t quiet = mag > 0x7c00 ? 0x00400000u : 0u;
    return bits_to_float(sign | 0x7f800000u | quiet | ((mag & 0x3ff) << 13));
  }
  // Scaling by 2^112 rebiases the exponent and normalises subnormals exactly.
  return bits_to_float(sign | float_to_bits(bits_to_float(mag << 13) * 0x1p112f));
#endif
}

inline uint16_t float_to_half_bits(float f) {
#if defined(__F16C__)
  return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT);
#else
  uint32_t u = float_to_bits(f), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return uint16_t(sign | 0x7e00 | ((a >> 13) & 0x1ff));
  if (a >= 0x477ff000) return uint16_t(sign | 0x7c00);
  if (a < 0x38800000) {  // adding 0.5 aligns the last kept bit to the unit of a float near 0.5
    uint32_t r = float_to_bits(bits_to_float(a) + 0.5f);
    return uint16_t(sign | (r - 0x3f000000));
  }
  return uint16_t(sign | ((a - 0x38000000 + 0xfff + ((a >> 13) & 1)) >> 13));
#endif
}

inline float bf16_bits_to_float(uint16_t b) { return bits_to_float(uint32_t(b) << 16); }

inline uint16_t float_to_bf16_bits(float f) {
  uint32_t u = float_to_bits(f);
  uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return uint16_t((u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : rounded);
}

}  // namespace ak

#define AK_DEFINE_FLOAT16(NAME, TO_FLOAT, FROM_FLOAT)                         \
  struct NAME {                                                               \
    uint16_t bits;                                                            \
    NAME() = default;                                                         \
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>     \
    NAME(T v) : bits(FROM_FLOAT(float(v))) {}                                 \
    static NAME from_bits(uint16_t b) {                                       \
      NAME r;                                                                 \
      r.bits = b;                                                             \
      return r;                                                               \
    }                                                                         \
    operator float() const { return TO_FLOAT(bits); }                         \
    NAME operator-() const { return from_bits(bits ^ 0x8000); }               \
    template <class T>                                                        \
    NAME& operator+=(T o) {                                                   \
      return *this = NAME(float(*this) + float(o));                           \
    }                                                                         \
    template <class T>                                                        \
    NAME& operator-=(T o) {                                                   \
      return *this = NAME(float(*this) - float(o));                           \
    }                                                                         \
    template <class T>                                                        \
    NAME& operator*=(T o) {                                                   \
      return *this = NAME(float(*this) * float(o));                           \
    }                                                                         \
    template <class T>                                                        \
    NAME& operator/=(T o) {                                                   \
      return *this = NAME(float(*this) / float(o));                           \
    }                                                                         \
  };                                                                          \
  inline NAME operator+(NAME a, NAME b) { return NAME(float(a) + float(b)); } \
  inline NAME operator-(NAME a, NAME b) { return NAME(float(a) - float(b)); } \
  inline NAME operator*(NAME a, NAME b) { return NAME(float(a) * float(b)); } \
  inline NAME operator/(NAME a, NAME b) { return NAME(float(a) / float(b)); } \
  inline bool operator==(NAME a, NAME b) { return float(a) == float(b); }     \
  inline bool operator!=(NAME a, NAME b) { return float(a) != float(b); }     \
  inline bool operator<(NAME a, NAME b) { return float(a) < float(b); }       \
  inline bool operator<=(NAME a, NAME b) { return float(a) <= float(b); }     \
  inline bool operator>(NAME a, NAME b) { return float(a) > float(b); }       \
  inline bool operator>=(NAME a, NAME b) { return float(a) >= float(b); }

AK_DEFINE_FLOAT16(half, ak::half_bits_to_float, ak::float_to_half_bits)
AK_DEFINE_FLOAT16(bfloat16_t, ak::bf16_bits_to_float, ak::float_to_bf16_bits)
#undef AK_DEFINE_FLOAT16

// A mixed expression such as half * float is computed in float, as C++ promotes it.
#define AK_MIXED(NAME, OP)                                              \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> \
  inline auto operator OP(NAME a, T b) {                                \
    return float(a) OP float(b);                                        \
  }                                                                     \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> \
  inline auto operator OP(T a, NAME b) {                                \
    return float(a) OP float(b);                                        \
  }
#define AK_MIXED_ALL(NAME) \
  AK_MIXED(NAME, +)        \
  AK_MIXED(NAME, -)        \
  AK_MIXED(NAME, *)        \
  AK_MIXED(NAME, /)        \
  AK_MIXED(NAME, ==)       \
  AK_MIXED(NAME, !=) AK_MIXED(NAME, <) AK_MIXED(NAME, <=) AK_MIXED(NAME, >) AK_MIXED(NAME, >=)
AK_MIXED_ALL(half)
AK_MIXED_ALL(bfloat16_t)
#undef AK_MIXED_ALL
#undef AK_MIXED
