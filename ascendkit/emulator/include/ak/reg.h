// Vector and predicate registers (256 bytes, 256 bits), control tags, and the lane loops.
#pragma once

#include "ak/trace.h"

namespace ak {
constexpr int kRegBytes = 256, kBlockBytes = 32;

template <class T>
struct alignas(64) Reg {
  using elem = T;
  static constexpr int N = kRegBytes / int(sizeof(T));
  T lane[N];
};
}  // namespace ak

using vector_f32 = ak::Reg<float>;
using vector_f16 = ak::Reg<half>;
using vector_bf16 = ak::Reg<bfloat16_t>;
using vector_f8e4m3 = ak::Reg<float8_e4m3_t>;
using vector_f8e5m2 = ak::Reg<float8_e5m2_t>;
using vector_f8e8m0 = ak::Reg<float8_e8m0_t>;
using vector_f4e2m1x2 = ak::Reg<float4_e2m1x2_t>;
using vector_f4e1m2x2 = ak::Reg<float4_e1m2x2_t>;
using vector_u8 = ak::Reg<uint8_t>;
using vector_u16 = ak::Reg<uint16_t>;
using vector_u32 = ak::Reg<uint32_t>;
using vector_u64 = ak::Reg<uint64_t>;
using vector_s8 = ak::Reg<int8_t>;
using vector_s16 = ak::Reg<int16_t>;
using vector_s32 = ak::Reg<int32_t>;
using vector_s64 = ak::Reg<int64_t>;
using vector_uint8_t = vector_u8;
using vector_uint16_t = vector_u16;
using vector_uint32_t = vector_u32;
using vector_int8_t = vector_s8;
using vector_int16_t = vector_s16;
using vector_int32_t = vector_s32;
using vector_half = vector_f16;
using vector_float = vector_f32;
using vector_bfloat16_t = vector_bf16;

// One byte a predicate bit, so that the bit of lane i of an n-byte type is the low byte of the i-th
// n-byte word: reading a mask is then a plain vector load.
struct alignas(64) vector_bool {
  uint8_t bit[ak::kRegBytes];
};

// A control tag converts to its own value even when it is a function parameter.
#define AK_TAG(NAME, GROUP, VALUE)                                              \
  struct NAME##_tag {                                                           \
    constexpr operator ak::tag::GROUP() const { return ak::tag::GROUP::VALUE; } \
  };                                                                            \
  inline constexpr NAME##_tag NAME;
namespace ak::tag {
enum class Mode { Zeroing, Merging, Unknown, Stored };
enum class Rounding { R, A, F, C, Z, O, H };
enum class Saturation { Enable, Disable };
enum class Part { Even, Odd, P0, P1, P2, P3 };
enum class Pos { Lowest, Highest };
enum class Half { Lower, Higher };
enum class Order { Inc, Dec };
enum class Post { Update };
enum class Bin { N0, N1 };
enum class Dist { DintlvB8, DintlvB16, DintlvB32 };
}  // namespace ak::tag
AK_TAG(MODE_ZEROING, Mode, Zeroing)
AK_TAG(MODE_MERGING, Mode, Merging)
AK_TAG(MODE_UNKNOWN, Mode, Unknown)
AK_TAG(MODE_STORED, Mode, Stored)
AK_TAG(ROUND_R, Rounding, R)
AK_TAG(ROUND_A, Rounding, A)
AK_TAG(ROUND_F, Rounding, F)
AK_TAG(ROUND_C, Rounding, C)
AK_TAG(ROUND_Z, Rounding, Z)
AK_TAG(ROUND_O, Rounding, O)
AK_TAG(ROUND_H, Rounding, H)
AK_TAG(RS_ENABLE, Saturation, Enable)
AK_TAG(RS_DISABLE, Saturation, Disable)
AK_TAG(PART_EVEN, Part, Even)
AK_TAG(PART_ODD, Part, Odd)
AK_TAG(PART_P0, Part, P0)
AK_TAG(PART_P1, Part, P1)
AK_TAG(PART_P2, Part, P2)
AK_TAG(PART_P3, Part, P3)
AK_TAG(POS_LOWEST, Pos, Lowest)
AK_TAG(POS_HIGHEST, Pos, Highest)
AK_TAG(LOWER, Half, Lower)
AK_TAG(HIGHER, Half, Higher)
AK_TAG(INC_ORDER, Order, Inc)
AK_TAG(DEC_ORDER, Order, Dec)
AK_TAG(POST_UPDATE, Post, Update)
AK_TAG(Bin_N0, Bin, N0)
AK_TAG(Bin_N1, Bin, N1)
AK_TAG(DINTLV_B8, Dist, DintlvB8)
AK_TAG(DINTLV_B16, Dist, DintlvB16)
AK_TAG(DINTLV_B32, Dist, DintlvB32)
#undef AK_TAG

namespace ak {

template <int BYTES>
struct UintOf;
template <>
struct UintOf<1> {
  using type = uint8_t;
};
template <>
struct UintOf<2> {
  using type = uint16_t;
};
template <>
struct UintOf<4> {
  using type = uint32_t;
};
template <>
struct UintOf<8> {
  using type = uint64_t;
};
template <class T>
using uint_of = typename UintOf<sizeof(T)>::type;

// The predicate bit of lane i for lanes of T: the lowest bit of the lane's group gates it.
template <class T>
inline bool active(const vector_bool& m, int i) {
  return reinterpret_cast<const uint_of<T>*>(m.bit)[i] & 1;
}

template <class T>
constexpr bool is_narrow_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>;
template <class T>
constexpr bool is_float = std::is_same_v<T, float> || is_narrow_float<T>;
// Type in which lanes of T are computed: the 16-bit floats in float32, rounded once at the end.
template <class T>
using compute_of = std::conditional_t<is_narrow_float<T>, float, T>;

// Lane by lane, so the destination may be one of the sources (ivdep: but no other lane of it).
template <class T, class F>
inline void map1(Reg<T>& dst, const Reg<T>& a, const vector_bool& m, F f) {
#pragma GCC ivdep
  for (int i = 0; i < Reg<T>::N; ++i) {
    T v = T(f(compute_of<T>(a.lane[i])));
    dst.lane[i] = active<T>(m, i) ? v : T{};
  }
}
template <class T, class F>
inline void map2(Reg<T>& dst, const Reg<T>& a, const Reg<T>& b, const vector_bool& m, F f) {
#pragma GCC ivdep
  for (int i = 0; i < Reg<T>::N; ++i) {
    T v = T(f(compute_of<T>(a.lane[i]), compute_of<T>(b.lane[i])));
    dst.lane[i] = active<T>(m, i) ? v : T{};
  }
}
template <class T, class F>
inline void map3(Reg<T>& dst, const Reg<T>& a, const Reg<T>& b, const Reg<T>& c,
                 const vector_bool& m, F f) {
#pragma GCC ivdep
  for (int i = 0; i < Reg<T>::N; ++i) {
    T v = T(f(compute_of<T>(a.lane[i]), compute_of<T>(b.lane[i]), compute_of<T>(c.lane[i])));
    dst.lane[i] = active<T>(m, i) ? v : T{};
  }
}

template <class T>
inline Reg<T> splat(T v) {
  Reg<T> r;
  for (int i = 0; i < Reg<T>::N; ++i) r.lane[i] = v;
  return r;
}
// Scalars arrive in whatever type the caller computed; the register's type decides.
template <class T, class S>
inline T scalar_to(S s) {
  return T(s);
}

}  // namespace ak
