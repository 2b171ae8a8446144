// Unified buffer -> register: every load distribution, plain and with pointer post-update.
// Offsets count elements of the pointer's type.
#pragma once

#include "ak/predicate.h"

namespace ak {
// An address register holds a byte offset; its element width is fixed where it is made.
struct AddrReg {
  int64_t bytes;
};
template <class T, class O>
inline const T* at_offset(const T* p, O offset) {
  return p + int64_t(offset);
}
template <class T>
inline const T* at_offset(const T* p, AddrReg offset) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(p) + offset.bytes);
}

template <class T>
inline void load_norm(Reg<T>& d, const T* p) {
  std::memcpy(d.lane, p, kRegBytes);
}
template <class T>
inline void load_brc_elem(Reg<T>& d, const T* p) {
  d = splat(*p);
}
template <class T>
inline void load_upsample(Reg<T>& d, const T* p) {
  for (int i = 0; i < Reg<T>::N; ++i) d.lane[i] = p[i / 2];
}
template <class T>
inline void load_downsample(Reg<T>& d, const T* p) {
  for (int i = 0; i < Reg<T>::N; ++i) d.lane[i] = p[2 * i];
}
// Zero-extends each element to RATIO times its width.
template <int RATIO, class T>
inline void load_unpack_by(Reg<T>& d, const T* p) {
  std::memset(d.lane, 0, kRegBytes);
  for (int i = 0; i < Reg<T>::N / RATIO; ++i) d.lane[RATIO * i] = p[i];
}
template <class T>
inline void load_unpack(Reg<T>& d, const T* p) {
  load_unpack_by<2>(d, p);
}
template <class T>
inline void load_unpack4(Reg<T>& d, const T* p) {
  load_unpack_by<4>(d, p);
}
template <class T>
inline void load_brc_datablock(Reg<T>& d, const T* p) {
  for (int b = 0; b < kRegBytes / kBlockBytes; ++b)
    std::memcpy(reinterpret_cast<char*>(d.lane) + b * kBlockBytes, p, kBlockBytes);
}
template <class T>
inline void load_brc_elem2datablock(Reg<T>& d, const T* p) {
  constexpr int per_block = kBlockBytes / sizeof(T);
  for (int i = 0; i < Reg<T>::N; ++i) d.lane[i] = p[i / per_block];
}
}  // namespace ak

// NAME(dst, src, offset) and NAME_postupdate(dst, src&, step): load at src, then advance it.
#define AK_LOAD(NAME, F, BYTES, ALIGN)                                      \
  template <class T, class O>                                               \
  AK_INSTR void NAME(ak::Reg<T>& dst, const T* src, O offset) {             \
    const T* p = ak::at_offset(src, offset);                                \
    ak::check_align(#NAME, p, ALIGN);                                       \
    AK_TOUCH(p, BYTES, false);                                              \
    ak::F(dst, p);                                                          \
    AK_OUT(#NAME, dst, sizeof(T));                                          \
  }                                                                         \
  template <class T>                                                        \
  AK_INSTR void NAME(ak::Reg<T>& dst, const T* src) {                       \
    NAME(dst, src, 0);                                                      \
  }                                                                         \
  template <class T>                                                        \
  AK_INSTR void NAME##_postupdate(ak::Reg<T>& dst, T*& src, int32_t step) { \
    ak::check_align(#NAME "_postupdate", src, ALIGN);                       \
    AK_TOUCH(src, BYTES, false);                                            \
    ak::F(dst, static_cast<const T*>(src));                                 \
    src += step;                                                            \
    AK_OUT(#NAME "_postupdate", dst, sizeof(T));                            \
  }
AK_LOAD(asc_loadalign, load_norm, 256, 32)
AK_LOAD(asc_loadalign_brc_elem, load_brc_elem, sizeof(T), sizeof(T))
AK_LOAD(asc_loadalign_upsample, load_upsample, 128, 32)
AK_LOAD(asc_loadalign_downsample, load_downsample, 512, 32)
AK_LOAD(asc_loadalign_unpack, load_unpack, 128, 32)
AK_LOAD(asc_loadalign_unpack4, load_unpack4, 64, 32)
AK_LOAD(asc_loadalign_brc_datablock, load_brc_datablock, 32, 32)
AK_LOAD(asc_loadalign_brc_elem2datablock, load_brc_elem2datablock, 8 * sizeof(T), 8 * sizeof(T))
#undef AK_LOAD

template <class T, class O>
AK_INSTR void asc_loadalign_deintlv(ak::Reg<T>& d0, ak::Reg<T>& d1, const T* src, O offset) {
  const T* p = ak::at_offset(src, offset);
  ak::check_align("asc_loadalign_deintlv", p, 32);
  AK_TOUCH(p, 512, false);
  for (int i = 0; i < ak::Reg<T>::N; ++i) d0.lane[i] = p[2 * i], d1.lane[i] = p[2 * i + 1];
  AK_OUT("asc_loadalign_deintlv", d0, sizeof(T));
}
template <class T>
AK_INSTR void asc_loadalign_deintlv(ak::Reg<T>& d0, ak::Reg<T>& d1, const T* src) {
  asc_loadalign_deintlv(d0, d1, src, 0);
}

#define AK_ADDR_REG(W)                                            \
  inline ak::AddrReg asc_update_addr_reg_b##W(int64_t elements) { \
    ak::AddrReg r{elements * (W / 8)};                            \
    AK_OUT("asc_update_addr_reg_b" #W, r, 8);                     \
    return r;                                                     \
  }
AK_ADDR_REG(8)
AK_ADDR_REG(16)
AK_ADDR_REG(32)
#undef AK_ADDR_REG

// Predicates in memory are bit arrays: bit i of the 32 bytes is predicate bit i.
namespace ak {
inline uint8_t memory_bit(const uint32_t* p, int i) { return (p[i / 32] >> (i % 32)) & 1; }
}  // namespace ak
#define AK_PREDICATE_LOAD(NAME, INDEX, BYTES)                                      \
  AK_INSTR void NAME(vector_bool& dst, const uint32_t* src, int32_t offset) {      \
    const uint32_t* p = src + offset;                                              \
    ak::check_align(#NAME ".predicate", p, 4);                                     \
    AK_TOUCH(p, BYTES, false);                                                     \
    for (int i = 0; i < ak::kRegBytes; ++i) dst.bit[i] = ak::memory_bit(p, INDEX); \
    AK_OUT(#NAME ".predicate", dst, 1);                                            \
  }
AK_PREDICATE_LOAD(asc_loadalign, i, 32)
AK_PREDICATE_LOAD(asc_loadalign_upsample, i / 2, 16)
AK_PREDICATE_LOAD(asc_loadalign_downsample, 2 * i, 64)
#undef AK_PREDICATE_LOAD
