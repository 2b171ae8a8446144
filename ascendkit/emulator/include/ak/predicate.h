// Predicate registers: patterns, tails, logic, packing, interleaving, load and store.
#pragma once

#include "ak/reg.h"

namespace ak::tag {
// A pattern selects lanes: the first n, every third or fourth, the lower half or quarter, all,
// none.
enum class Pattern { All, None, First, EveryThird, EveryFourth, Half, Quarter };
}  // namespace ak::tag
#define AK_PATTERN(NAME, KIND, COUNT)                    \
  struct NAME##_tag {                                    \
    static constexpr auto kind = ak::tag::Pattern::KIND; \
    static constexpr int count = COUNT;                  \
  };                                                     \
  inline constexpr NAME##_tag NAME;
AK_PATTERN(PAT_ALL, All, 0)
AK_PATTERN(PAT_ALLF, None, 0)
AK_PATTERN(PAT_M3, EveryThird, 0)
AK_PATTERN(PAT_M4, EveryFourth, 0)
AK_PATTERN(PAT_H, Half, 0)
AK_PATTERN(PAT_Q, Quarter, 0)
AK_PATTERN(PAT_VL1, First, 1)
AK_PATTERN(PAT_VL2, First, 2)
AK_PATTERN(PAT_VL3, First, 3)
AK_PATTERN(PAT_VL4, First, 4)
AK_PATTERN(PAT_VL8, First, 8)
AK_PATTERN(PAT_VL16, First, 16)
AK_PATTERN(PAT_VL32, First, 32)
AK_PATTERN(PAT_VL64, First, 64)
AK_PATTERN(PAT_VL128, First, 128)
#undef AK_PATTERN

namespace ak {
template <class U, class F>
inline vector_bool make_mask(F f) {
  vector_bool m;
  auto* word = reinterpret_cast<U*>(m.bit);
  for (int i = 0; i < kRegBytes / int(sizeof(U)); ++i) word[i] = U(f(i) ? 1 : 0);
  return m;
}
template <class U, class P>
inline vector_bool pattern_mask(P) {
  constexpr int lanes = kRegBytes / sizeof(U);
  using tag::Pattern;
  return make_mask<U>([](int i) {
    return P::kind == Pattern::All           ? true
           : P::kind == Pattern::None        ? false
           : P::kind == Pattern::First       ? i < P::count
           : P::kind == Pattern::EveryThird  ? i % 3 == 0
           : P::kind == Pattern::EveryFourth ? i % 4 == 0
           : P::kind == Pattern::Half        ? i < lanes / 2
                                             : i < lanes / 4;
  });
}
// The first `left` lanes; `left` then drops by a full register.
template <class U>
inline vector_bool tail_mask(uint32_t& left) {
  constexpr uint32_t lanes = kRegBytes / sizeof(U);
  uint32_t n = left;
  left = n > lanes ? n - lanes : 0;
  return make_mask<U>([n](int i) { return uint32_t(i) < n; });
}
}  // namespace ak

#define AK_MASKS(W, U)                                        \
  template <class P>                                          \
  AK_INSTR vector_bool asc_create_mask_b##W(P pattern) {      \
    vector_bool m = ak::pattern_mask<U>(pattern);             \
    AK_MUTATE_MASK("asc_create_mask_b" #W, m, sizeof(U));     \
    AK_OUT("asc_create_mask_b" #W, m, sizeof(U));             \
    return m;                                                 \
  }                                                           \
  AK_INSTR vector_bool asc_update_mask_b##W(uint32_t& left) { \
    vector_bool m = ak::tail_mask<U>(left);                   \
    AK_MUTATE_MASK("asc_update_mask_b" #W, m, sizeof(U));     \
    AK_OUT("asc_update_mask_b" #W, m, sizeof(U));             \
    return m;                                                 \
  }
AK_MASKS(8, uint8_t)
AK_MASKS(16, uint16_t)
AK_MASKS(32, uint32_t)
AK_MASKS(64, uint64_t)
#undef AK_MASKS

#define AK_PREDICATE(NAME, EXPR)                                                     \
  AK_INSTR void NAME(vector_bool& dst, const vector_bool& a, const vector_bool& b,   \
                     const vector_bool& m) {                                         \
    for (int i = 0; i < ak::kRegBytes; ++i) dst.bit[i] = uint8_t((EXPR) & m.bit[i]); \
    AK_OUT(#NAME ".predicate", dst, 1);                                              \
  }
AK_PREDICATE(asc_and, a.bit[i] & b.bit[i])
AK_PREDICATE(asc_or, a.bit[i] | b.bit[i])
AK_PREDICATE(asc_xor, a.bit[i] ^ b.bit[i])
#undef AK_PREDICATE
AK_INSTR void asc_not(vector_bool& dst, const vector_bool& a, const vector_bool& m) {
  for (int i = 0; i < ak::kRegBytes; ++i) dst.bit[i] = uint8_t((a.bit[i] ^ 1) & m.bit[i]);
  AK_OUT("asc_not.predicate", dst, 1);
}
AK_INSTR void asc_select(vector_bool& dst, const vector_bool& a, const vector_bool& b,
                         const vector_bool& m) {
  for (int i = 0; i < ak::kRegBytes; ++i) dst.bit[i] = m.bit[i] ? a.bit[i] : b.bit[i];
  AK_OUT("asc_select.predicate", dst, 1);
}

namespace ak {
// Keeps every second bit, packed into one half; the other half is cleared.
inline vector_bool pack_bits(const vector_bool& a, int half) {
  vector_bool r{};
  for (int i = 0; i < kRegBytes / 2; ++i) r.bit[half * kRegBytes / 2 + i] = a.bit[2 * i];
  return r;
}
// Spreads one half over the even bits; the odd bits are cleared.
inline vector_bool unpack_bits(const vector_bool& a, int half) {
  vector_bool r{};
  for (int i = 0; i < kRegBytes / 2; ++i) r.bit[2 * i] = a.bit[half * kRegBytes / 2 + i];
  return r;
}
// Works on groups of STEP bits, the width of one lane's predicate.
template <int STEP>
inline void interleave_bits(vector_bool& d0, vector_bool& d1, const vector_bool& a,
                            const vector_bool& b) {
  uint8_t out[2 * kRegBytes];
  for (int i = 0; i < kRegBytes / STEP; ++i) {
    std::memcpy(out + 2 * i * STEP, a.bit + i * STEP, STEP);
    std::memcpy(out + 2 * i * STEP + STEP, b.bit + i * STEP, STEP);
  }
  std::memcpy(d0.bit, out, kRegBytes);
  std::memcpy(d1.bit, out + kRegBytes, kRegBytes);
}
template <int STEP>
inline void deinterleave_bits(vector_bool& d0, vector_bool& d1, const vector_bool& a,
                              const vector_bool& b) {
  uint8_t in[2 * kRegBytes];
  std::memcpy(in, a.bit, kRegBytes);
  std::memcpy(in + kRegBytes, b.bit, kRegBytes);
  for (int i = 0; i < kRegBytes / STEP; ++i) {
    std::memcpy(d0.bit + i * STEP, in + 2 * i * STEP, STEP);
    std::memcpy(d1.bit + i * STEP, in + 2 * i * STEP + STEP, STEP);
  }
}
}  // namespace ak

#define AK_PREDICATE_MOVE(NAME, EXPR)                          \
  AK_INSTR void NAME(vector_bool& dst, const vector_bool& a) { \
    dst = EXPR;                                                \
    AK_OUT(#NAME ".predicate", dst, 1);                        \
  }
AK_PREDICATE_MOVE(asc_pack_to_low, ak::pack_bits(a, 0))
AK_PREDICATE_MOVE(asc_pack_to_high, ak::pack_bits(a, 1))
AK_PREDICATE_MOVE(asc_unpack_lower, ak::unpack_bits(a, 0))
AK_PREDICATE_MOVE(asc_unpack_upper, ak::unpack_bits(a, 1))
#undef AK_PREDICATE_MOVE

#define AK_PREDICATE_PAIR(NAME, W, STEP, F)                                         \
  AK_INSTR void NAME##_b##W(vector_bool& d0, vector_bool& d1, const vector_bool& a, \
                            const vector_bool& b) {                                 \
    ak::F<STEP>(d0, d1, a, b);                                                      \
    AK_OUT(#NAME "_b" #W, d0, STEP);                                                \
  }
AK_PREDICATE_PAIR(asc_intlv, 8, 1, interleave_bits)
AK_PREDICATE_PAIR(asc_intlv, 16, 2, interleave_bits)
AK_PREDICATE_PAIR(asc_intlv, 32, 4, interleave_bits)
AK_PREDICATE_PAIR(asc_deintlv, 8, 1, deinterleave_bits)
AK_PREDICATE_PAIR(asc_deintlv, 16, 2, deinterleave_bits)
AK_PREDICATE_PAIR(asc_deintlv, 32, 4, deinterleave_bits)
#undef AK_PREDICATE_PAIR
