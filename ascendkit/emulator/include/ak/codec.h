// One encoder and one decoder for every float format of at most 16 bits, with seven rounding modes.
#pragma once

#include "ak/float16.h"

namespace ak {

enum class Round : uint8_t { Even, Away, Floor, Ceil, Zero, Odd, HalfAway };
// What the top exponent means: IEEE infinities, one NaN code per sign, or plain numbers only.
enum class Top : uint8_t { Ieee, NanOnly, Finite };

template <int EXP, int MAN, Top TOP>
struct Format {
  static constexpr int exp_bits = EXP, man_bits = MAN, bias = (1 << (EXP - 1)) - 1;
  static constexpr int width = 1 + EXP + MAN;
  static constexpr Top top = TOP;
  static constexpr int emin = 1 - bias;
  static constexpr uint32_t sign_bit = 1u << (width - 1);
  static constexpr uint32_t all = (1u << (EXP + MAN)) - 1;
  static constexpr uint32_t inf = ((1u << EXP) - 1) << MAN;
  static constexpr uint32_t nan = TOP == Top::Ieee ? inf | (1u << (MAN - 1)) : all;
  static constexpr uint32_t max_finite =
      TOP == Top::Ieee ? inf - 1 : (TOP == Top::NanOnly ? all - 1 : all);
};
using F16 = Format<5, 10, Top::Ieee>;
using BF16 = Format<8, 7, Top::Ieee>;
using E4M3 = Format<4, 3, Top::NanOnly>;
using E5M2 = Format<5, 2, Top::Ieee>;
using E2M1 = Format<2, 1, Top::Finite>;
using E1M2 = Format<1, 2, Top::Finite>;

// Rounds a non-negative float below 2^22 to an integer; `negative` is the sign it stands for.
inline float round_magnitude(float t, Round mode, bool negative) {
  float even = (t + 0x1p23f) - 0x1p23f;
  float down = even > t ? even - 1.0f : even;
  bool exact = down == t;
  switch (mode) {
    case Round::Even:
      return even;
    case Round::Away:
    case Round::HalfAway:
      return t - down >= 0.5f ? down + 1.0f : down;
    case Round::Floor:
      return exact || !negative ? down : down + 1.0f;
    case Round::Ceil:
      return exact || negative ? down : down + 1.0f;
    case Round::Zero:
      return down;
    case Round::Odd:
      return exact ? down : (int32_t(down) & 1 ? down : down + 1.0f);
  }
  return even;
}

// float32 -> F. Branch-free apart from the (loop-invariant) mode, so a loop of it vectorises.
template <class F>
inline uint32_t encode(float x, Round mode, bool saturate) {
  uint32_t u = float_to_bits(x), a = u & 0x7fffffff;
  bool negative = u >> 31;
  int exponent = int(a >> 23) - 127;
  int top = F::bias + 1;
  int e = exponent < F::emin ? F::emin : (exponent > top ? top : exponent);
  bool huge = exponent > top || a >= 0x7f800000;
  // Scaling by 2^(MAN - e) is exact except for float32 subnormals, far below every format's range
  // except bfloat16's, whose scale is applied in two exact steps.
  float magnitude = bits_to_float(a);
  float scaled;
  if constexpr (F::exp_bits == 8) {
    int shift = F::man_bits - e;
    int first = shift / 2, second = shift - first;
    scaled = magnitude * bits_to_float(uint32_t(first + 127) << 23) *
             bits_to_float(uint32_t(second + 127) << 23);
  } else {
    scaled = magnitude * bits_to_float(uint32_t(F::man_bits - e + 127) << 23);
  }
  scaled = huge ? 0.0f : scaled;
  uint32_t code = (uint32_t(e - F::emin) << F::man_bits) +
                  uint32_t(int32_t(round_magnitude(scaled, mode, negative)));
  bool over = huge || code > F::max_finite;
  bool is_nan = a > 0x7f800000;
  bool is_inf = a == 0x7f800000;
  // Overflow without saturation: the IEEE formats go to infinity unless the mode rounds inwards.
  bool inwards =
      !is_inf && (mode == Round::Zero || mode == Round::Odd ||
                  (mode == Round::Floor && !negative) || (mode == Round::Ceil && negative));
  uint32_t overflow = F::top == Top::Finite ? F::max_finite
                      : saturate || inwards ? F::max_finite
                      : F::top == Top::Ieee ? F::inf
                                            : F::nan;
  uint32_t mag = is_nan ? (F::top == Top::Finite ? 0u : F::nan) : (over ? overflow : code);
  return mag | (negative ? F::sign_bit : 0u);
}

template <class F>
inline float decode(uint32_t code) {
  uint32_t mag = code & F::all, sign = code & F::sign_bit ? 0x80000000u : 0u;
  uint32_t e = mag >> F::man_bits, m = mag & ((1u << F::man_bits) - 1);
  float normal = bits_to_float(((e + 127 - F::bias) << 23) | (m << (23 - F::man_bits)));
  float subnormal = float(int(m)) * bits_to_float(uint32_t(F::emin - F::man_bits + 127) << 23);
  float value = e == 0 ? subnormal : normal;
  if constexpr (F::top == Top::Ieee)
    value = mag >= F::inf ? bits_to_float(mag == F::inf ? 0x7f800000u : 0x7fc00000u) : value;
  if constexpr (F::top == Top::NanOnly) value = mag == F::all ? bits_to_float(0x7fc00000u) : value;
  return bits_to_float(float_to_bits(value) | sign);
}

// e8m0: a bare power of two, 0xff is NaN.
inline float decode_e8m0(uint8_t code) {
  return code == 0xff ? bits_to_float(0x7fc00000u)
         : code == 0  ? 0x1p-127f
                      : bits_to_float(uint32_t(code) << 23);
}

}  // namespace ak
