// Packed conversions of SIMT code: two lanes a call, round to nearest even.
#pragma once

#include "ak/small_vec.h"

using __asc_fp8x2_storage_t = uint16_t;
enum __asc_saturation_t { __ASC_NOSAT, __ASC_SATFINITE };
enum __asc_fp8_interpretation_t { __ASC_E4M3, __ASC_E5M2 };

inline __asc_fp8x2_storage_t __asc_cvt_float2_to_fp8x2(float2 v, __asc_saturation_t saturation,
                                                       __asc_fp8_interpretation_t format) {
  bool sat = saturation == __ASC_SATFINITE;
  auto one = [&](float x) {
    return format == __ASC_E4M3 ? ak::encode<ak::E4M3>(x, ak::Round::Even, sat)
                                : ak::encode<ak::E5M2>(x, ak::Round::Even, sat);
  };
  return uint16_t(one(v.x) | one(v.y) << 8);
}
inline float2 __e4m3x22float2(float8_e4m3x2_t v) { return {float(v.x), float(v.y)}; }
inline float2 __e5m2x22float2(float8_e5m2x2_t v) { return {float(v.x), float(v.y)}; }
inline float2 __half22float2(half2 v) { return {float(v.x), float(v.y)}; }
inline half2 __float22half2_rn(float2 v) { return {half(v.x), half(v.y)}; }
inline float2 __bfloat1622float2(bfloat16x2_t v) { return {float(v.x), float(v.y)}; }
inline bfloat16x2_t __float22bfloat162_rn(float2 v) { return {bfloat16_t(v.x), bfloat16_t(v.y)}; }
inline float __bfloat162float(bfloat16_t v) { return float(v); }
inline bfloat16_t __float2bfloat16_rn(float v) { return bfloat16_t(v); }
inline float __half2float(half v) { return float(v); }
inline half __float2half_rn(float v) { return half(v); }
