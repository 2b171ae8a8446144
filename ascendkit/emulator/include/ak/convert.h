// Conversion of one value between any two element types, under a rounding and saturation mode.
#pragma once

#include <limits>

#include "ak/codec.h"
#include "ak/lane_math.h"

namespace ak {
template <class T>
struct FormatOf {
  using type = void;
};
template <>
struct FormatOf<half> {
  using type = F16;
};
template <>
struct FormatOf<bfloat16_t> {
  using type = BF16;
};
template <>
struct FormatOf<float8_e4m3_t> {
  using type = E4M3;
};
template <>
struct FormatOf<float8_e5m2_t> {
  using type = E5M2;
};
template <class T>
using format_of = typename FormatOf<T>::type;
template <class T>
constexpr bool is_small_float = !std::is_void_v<format_of<T>>;

constexpr Round round_of(tag::Rounding r) {
  constexpr Round table[] = {Round::Even, Round::Away, Round::Floor,   Round::Ceil,
                             Round::Zero, Round::Odd,  Round::HalfAway};
  return table[int(r)];
}

template <class T>
inline float to_float(uint_of<T> bits) {
  if constexpr (std::is_same_v<T, float>)
    return bits_to_float(bits);
  else if constexpr (std::is_same_v<T, bfloat16_t>)
    return bf16_bits_to_float(bits);
  else if constexpr (std::is_same_v<T, half>)
    return half_bits_to_float(bits);
  else if constexpr (std::is_same_v<T, float8_e8m0_t>)
    return decode_e8m0(bits);
  else
    return decode<format_of<T>>(bits);
}

inline float round_integral(float x, Round mode) {
  switch (mode) {
    case Round::Even:
      return std::nearbyint(x);
    case Round::Away:
    case Round::HalfAway:
      return std::round(x);
    case Round::Floor:
      return std::floor(x);
    case Round::Ceil:
      return std::ceil(x);
    case Round::Zero:
      return std::trunc(x);
    case Round::Odd: {
      float t = std::trunc(x);
      return t == x || std::fmod(t, 2.0f) != 0 ? t : t + (x > 0 ? 1.0f : -1.0f);
    }
  }
  return x;
}

// NaN becomes 0. Out of range: the nearest bound, or the low bits of the exact integer.
template <class D>
inline D float_to_int(float x, Round mode, bool saturate) {
  float r = round_integral(x, mode);
  if (r != r) return 0;
  constexpr double low = double(std::numeric_limits<D>::lowest());
  constexpr double high = -double(std::numeric_limits<D>::lowest());  // one past max, signed types
  double bound = std::is_signed_v<D> ? high : double(std::numeric_limits<D>::max()) + 1;
  if (double(r) >= low && double(r) < bound) return D(r);
  if (saturate) return r < 0 ? std::numeric_limits<D>::lowest() : std::numeric_limits<D>::max();
  if (std::isinf(r)) return 0;
  // Multiples of 2^64 vanish, so the remainder keeps exactly the low bits.
  double rem = std::fmod(double(r), 0x1p64);
  uint64_t low_bits = rem < 0 ? uint64_t(0) - uint64_t(-rem) : uint64_t(rem);
  return D(low_bits);
}

// An integer magnitude rounded to `bits` significant bits.
inline uint64_t round_bits(uint64_t v, int bits, Round mode, bool negative) {
  int width = 64 - __builtin_clzll(v | 1);
  if (width <= bits) return v;
  int drop = width - bits;
  uint64_t unit = uint64_t(1) << drop, rest = v & (unit - 1), down = v - rest, tie = unit / 2;
  bool up = false;
  switch (mode) {
    case Round::Even:
      up = rest > tie || (rest == tie && (down & unit));
      break;
    case Round::Away:
    case Round::HalfAway:
      up = rest >= tie;
      break;
    case Round::Floor:
      up = rest && negative;
      break;
    case Round::Ceil:
      up = rest && !negative;
      break;
    case Round::Zero:
      break;
    case Round::Odd:
      up = rest && !(down & unit);
      break;
  }
  return up ? down + unit : down;
}
template <class D, class S>
inline D int_to_float(S v, Round mode) {
  bool negative = std::is_signed_v<S> && v < 0;
  uint64_t mag = negative ? uint64_t(0) - uint64_t(int64_t(v)) : uint64_t(v);
  constexpr int bits = std::is_same_v<D, float> ? 24 : std::is_same_v<D, half> ? 11 : 8;
  float r = float(round_bits(mag, bits, mode, negative));  // exact by now, unless out of range
  return D(negative ? -r : r);
}

template <class D, class S>
inline D int_to_int(S v, bool saturate) {
  if (!saturate) return D(v);
  __int128 wide = v, low = std::numeric_limits<D>::lowest(), high = std::numeric_limits<D>::max();
  return D(wide < low ? low : (wide > high ? high : wide));
}

// Bits in, bits out: what vcvt does to one lane.
template <class D, class S>
inline uint_of<D> convert_bits(uint_of<S> bits, Round mode, bool saturate) {
  if constexpr (std::is_integral_v<D> && std::is_integral_v<S>) {
    return uint_of<D>(int_to_int<D>(S(bits), saturate));
  } else if constexpr (std::is_integral_v<S>) {
    D v = int_to_float<D>(S(bits), mode);
    return std::bit_cast<uint_of<D>>(v);
  } else {
    float x = to_float<S>(bits);
    if constexpr (std::is_integral_v<D>)
      return uint_of<D>(float_to_int<D>(x, mode, saturate));
    else if constexpr (std::is_same_v<D, float>)
      return float_to_bits(x);
    else
      return uint_of<D>(encode<format_of<D>>(x, mode, saturate));
  }
}
}  // namespace ak
