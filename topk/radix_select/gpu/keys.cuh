// Keys: unsigned numbers that order as the policy orders values, NaN on top, -0 as +0.
namespace ak {

struct Bf16 {
  using Word = u16;
  static constexpr u32 BITS = 16, INF = 0x7f80;
  static constexpr int FINE = 0;  // log2 of keys a bin takes once a first threshold is known
  AK_INLINE static u32 above(u32 x, u32 t) { return above_bf16(x, t); }
};
struct Fp16 {
  using Word = u16;
  static constexpr u32 BITS = 16, INF = 0x7c00;
  static constexpr int FINE = 2;
  AK_INLINE static u32 above(u32 x, u32 t) { return above_fp16(x, t); }
};
struct Fp32 {
  using Word = u32;
  static constexpr u32 BITS = 32, INF = 0x7f800000;
  static constexpr int FINE = 14;
};

template <class F>
struct Keys {
  static constexpr u32 SIGN = 1u << (F::BITS - 1);
  static constexpr u32 ONES = SIGN | (SIGN - 1);
  static constexpr u32 INF = F::INF | SIGN, NAN_ = ONES - 1;

  AK_INLINE static u32 of(u32 bits) {
    u32 key = bits & SIGN ? ~bits & ONES : bits | SIGN;
    key = bits == SIGN ? SIGN : key;
    return (bits & (SIGN - 1)) > F::INF ? NAN_ : key;
  }
  // Bits of a value with this key.
  AK_INLINE static u32 value(u32 key) { return key & SIGN ? key & (SIGN - 1) : ~key & ONES; }
  // The largest value below `key`, so that "not at most" it means "at or above the key". With NaN
  // for it everything passes; NaN alone passes infinity.
  AK_INLINE static u32 limit(u32 key) {
    u32 before = key == SIGN ? SIGN - 2 : (key - 1) & ONES;
    u32 bits = key > INF ? F::INF : value(before);
    return F::BITS == 16 ? bits | bits << 16 : bits;
  }
};

// Which elements of COUNT vectors are not at most `t`: 16-bit types have the lower halves of the
// words at bits 0 to 15 and the upper halves at 16 to 31, float32 a bit a word.
template <class F, int COUNT>
AK_INLINE u32 passing(const uint4 (&x)[COUNT], u32 t) {
  u32 m = 0;
#pragma unroll
  for (int v = 0; v < COUNT; ++v) {
    const u32 w[4] = {x[v].x, x[v].y, x[v].z, x[v].w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (F::BITS == 16) {
        m |= F::above(w[i], t) & (0x00010001u << (4 * v + i));
      } else {
        m |= !(__uint_as_float(w[i]) <= __uint_as_float(t)) ? 1u << (4 * v + i) : 0u;
      }
    }
  }
  return m;
}

}  // namespace ak
