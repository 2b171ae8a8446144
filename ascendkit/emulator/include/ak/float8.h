// 8-bit and packed 4-bit float storage types. They carry bits; arithmetic happens in float.
#pragma once

#include "ak/codec.h"

#define AK_DEFINE_FLOAT8(NAME, FORMAT)                                             \
  struct NAME {                                                                    \
    uint8_t data;                                                                  \
    NAME() = default;                                                              \
    NAME(float v) : data(uint8_t(ak::encode<FORMAT>(v, ak::Round::Even, true))) {} \
    static NAME from_bits(uint8_t b) {                                             \
      NAME r;                                                                      \
      r.data = b;                                                                  \
      return r;                                                                    \
    }                                                                              \
    operator float() const { return ak::decode<FORMAT>(data); }                    \
  };
AK_DEFINE_FLOAT8(float8_e4m3_t, ak::E4M3)
AK_DEFINE_FLOAT8(float8_e5m2_t, ak::E5M2)
#undef AK_DEFINE_FLOAT8

struct float8_e8m0_t {
  uint8_t data;
  float8_e8m0_t() = default;
  explicit float8_e8m0_t(uint8_t b) : data(b) {}
  operator float() const { return ak::decode_e8m0(data); }
};
using fp8_e8m0_t = float8_e8m0_t;

// Two 4-bit floats in one byte; the even element sits in the low nibble.
struct float4_e2m1x2_t {
  uint8_t data;
};
struct float4_e1m2x2_t {
  uint8_t data;
};
