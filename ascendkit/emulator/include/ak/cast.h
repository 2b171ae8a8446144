// ::vcvt, the vector conversions. A narrow lane is part p of the wide lane it shares bits with:
// narrowing writes part p and clears (or, merging, keeps) the rest, widening reads part p.
#pragma once

#include "ak/convert.h"
#include "ak/permute.h"

namespace ak {
struct CastControls {
  Round round = Round::Even;
  bool saturate = false, merge = false;
  int part = 0;
};
template <class C>
constexpr void take_control(CastControls& all, C) {
  if constexpr (std::is_convertible_v<C, tag::Rounding>)
    all.round = round_of(C{});
  else if constexpr (std::is_convertible_v<C, tag::Saturation>)
    all.saturate = tag::Saturation(C{}) == tag::Saturation::Enable;
  else if constexpr (std::is_convertible_v<C, tag::Mode>)
    all.merge = tag::Mode(C{}) == tag::Mode::Merging;
  else {
    constexpr int parts[] = {0, 1, 0, 1, 2, 3};
    all.part = parts[int(tag::Part(C{}))];
  }
}
template <class... C>
constexpr CastControls controls_of(C... c) {
  CastControls all;
  (take_control(all, c), ...);
  return all;
}

// W is the wider lane; one wide lane holds both the source and the destination of a conversion.
template <class D, class S, class... C>
inline void cast_lanes(Reg<D>& dst, const Reg<S>& src, const vector_bool& m, C... c) {
  constexpr CastControls k = controls_of(C{}...);
  (void)sizeof...(c);
  using W = std::conditional_t<(sizeof(D) > sizeof(S)), uint_of<D>, uint_of<S>>;
  constexpr int src_shift = sizeof(S) < sizeof(W) ? k.part * 8 * int(sizeof(S)) : 0;
  constexpr int dst_shift = sizeof(D) < sizeof(W) ? k.part * 8 * int(sizeof(D)) : 0;
  static_assert(src_shift < 8 * int(sizeof(W)) && dst_shift < 8 * int(sizeof(W)),
                "conversion part outside the lane");
  constexpr W keep = sizeof(D) < sizeof(W) ? W(~(W(uint_of<D>(-1)) << dst_shift)) : W(0);
  const W* in = reinterpret_cast<const W*>(src.lane);
  W* out = reinterpret_cast<W*>(dst.lane);
  W result[Reg<W>::N];
  for (int i = 0; i < Reg<W>::N; ++i) {
    uint_of<S> bits = uint_of<S>(in[i] >> src_shift);
    W v = W(convert_bits<D, S>(bits, k.round, k.saturate)) << dst_shift;
    bool on = reinterpret_cast<const W*>(m.bit)[i] & 1;
    result[i] = k.merge ? (on ? W((out[i] & keep) | v) : out[i]) : (on ? v : W(0));
  }
  std::memcpy(out, result, kRegBytes);
}

// Packed 4-bit floats: two bfloat16 lanes share a 32-bit word with the byte that holds both codes.
template <class F, class... C>
inline void cast_to_fp4(uint32_t* out, const Reg<bfloat16_t>& src, const vector_bool& m, C... c) {
  constexpr CastControls k = controls_of(C{}...);
  (void)sizeof...(c);
  for (int i = 0; i < kRegBytes / 4; ++i) {
    uint32_t byte = 0, mask = 0;
    for (int j = 0; j < 2; ++j)
      if (active<bfloat16_t>(m, 2 * i + j)) {
        byte |= encode<F>(float(src.lane[2 * i + j]), k.round, true) << (4 * j);
        mask |= 0xfu << (4 * j);
      }
    uint32_t old = k.merge ? out[i] & ~(mask << (8 * k.part)) : 0;
    out[i] = old | byte << (8 * k.part);
  }
}
template <class F, class... C>
inline void cast_from_fp4(Reg<bfloat16_t>& dst, const uint32_t* in, const vector_bool& m, C... c) {
  constexpr CastControls k = controls_of(C{}...);
  (void)sizeof...(c);
  for (int i = 0; i < Reg<bfloat16_t>::N; ++i) {
    bool on = active<bfloat16_t>(m, i);
    uint32_t code = in[i / 2] >> (8 * k.part + 4 * (i & 1)) & 0xf;
    if (on)
      dst.lane[i] = bfloat16_t(decode<F>(code));
    else if (!k.merge)
      dst.lane[i] = bfloat16_t::from_bits(0);
  }
}
}  // namespace ak

template <class D, class S, class... C>
AK_INSTR void vcvt(ak::Reg<D>& dst, const ak::Reg<S>& src, const vector_bool& m, C... controls) {
  using namespace ak;
  if constexpr (std::is_same_v<D, float4_e2m1x2_t>)
    cast_to_fp4<E2M1>(reinterpret_cast<uint32_t*>(dst.lane), src, m, controls...);
  else if constexpr (std::is_same_v<D, float4_e1m2x2_t>)
    cast_to_fp4<E1M2>(reinterpret_cast<uint32_t*>(dst.lane), src, m, controls...);
  else if constexpr (std::is_same_v<S, float4_e2m1x2_t>)
    cast_from_fp4<E2M1>(dst, reinterpret_cast<const uint32_t*>(src.lane), m, controls...);
  else if constexpr (std::is_same_v<S, float4_e1m2x2_t>)
    cast_from_fp4<E1M2>(dst, reinterpret_cast<const uint32_t*>(src.lane), m, controls...);
  else
    cast_lanes(dst, src, m, controls...);
  AK_OUT("vcvt", dst, sizeof(D));
}
