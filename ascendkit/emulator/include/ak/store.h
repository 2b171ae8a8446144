// Register -> unified buffer: every store distribution. Inactive lanes leave memory as it was.
#pragma once

#include "ak/load.h"

namespace ak {
template <class T>
inline bool all_active(const vector_bool& m) {
  const auto* w = reinterpret_cast<const uint_of<T>*>(m.bit);
  uint_of<T> all = 1;
  for (int i = 0; i < Reg<T>::N; ++i) all &= w[i];
  return all & 1;
}
template <class T>
inline void store_norm(T* p, const Reg<T>& v, const vector_bool& m) {
  if (all_active<T>(m)) {
    std::memcpy(p, v.lane, kRegBytes);
    AK_TOUCH(p, kRegBytes, true);
    return;
  }
  for (int i = 0; i < Reg<T>::N; ++i)
    if (active<T>(m, i)) {
      p[i] = v.lane[i];
      AK_TOUCH(p + i, sizeof(T), true);
    }
}
// Keeps the low part (type OUT) of each active lane, densely packed.
template <class OUT, class T>
inline void store_packed(void* base, const Reg<T>& v, const vector_bool& m) {
  auto* p = static_cast<OUT*>(base);
  const auto* in = reinterpret_cast<const uint_of<T>*>(v.lane);
  for (int i = 0; i < Reg<T>::N; ++i)
    if (active<T>(m, i)) {
      p[i] = OUT(in[i]);
      AK_TOUCH(p + i, sizeof(OUT), true);
    }
}
// Writes the 8 blocks of a register `stride` blocks apart.
template <class T>
inline void store_blocks(T* p, const Reg<T>& v, uint16_t stride, const vector_bool& m) {
  constexpr int per_block = kBlockBytes / sizeof(T);
  for (int i = 0; i < Reg<T>::N; ++i)
    if (active<T>(m, i)) {
      T* at = p + int64_t(i / per_block) * stride * per_block + i % per_block;
      *at = v.lane[i];
      AK_TOUCH(at, sizeof(T), true);
    }
}
}  // namespace ak

template <class T, class O>
AK_INSTR void asc_storealign(T* base, const ak::Reg<T>& v, O offset, const vector_bool& m) {
  T* p = const_cast<T*>(ak::at_offset(static_cast<const T*>(base), offset));
  ak::check_align("asc_storealign", p, 32);
  AK_STORED("asc_storealign", v, sizeof(T));
  ak::store_norm(p, stored, m);
}
template <class T>
AK_INSTR void asc_storealign_postupdate(T*& base, const ak::Reg<T>& v, int32_t step,
                                        const vector_bool& m) {
  ak::check_align("asc_storealign_postupdate", base, 32);
  AK_STORED("asc_storealign_postupdate", v, sizeof(T));
  ak::store_norm(base, stored, m);
  base += step;
}
template <class T>
AK_INSTR void asc_storealign(T* base, const ak::Reg<T>& v, uint16_t block_stride, uint16_t,
                             const vector_bool& m) {
  ak::check_align("asc_storealign.blocks", base, 32);
  AK_STORED("asc_storealign.blocks", v, sizeof(T));
  ak::store_blocks(base, stored, block_stride, m);
}
// The pointer then advances by `repeat_stride` blocks of 32 bytes.
template <class T>
AK_INSTR void asc_storealign_postupdate(T*& base, const ak::Reg<T>& v, uint16_t block_stride,
                                        uint16_t repeat_stride, const vector_bool& m) {
  ak::check_align("asc_storealign_postupdate.blocks", base, 32);
  AK_STORED("asc_storealign_postupdate.blocks", v, sizeof(T));
  ak::store_blocks(base, stored, block_stride, m);
  base += int64_t(repeat_stride) * ak::kBlockBytes / sizeof(T);
}
template <class T>
AK_INSTR void asc_storealign_1st(T* base, const ak::Reg<T>& v, int32_t offset) {
  ak::check_align("asc_storealign_1st", base + offset, sizeof(T));
  AK_STORED("asc_storealign_1st", v, sizeof(T));
  base[offset] = stored.lane[0];
  AK_TOUCH(base + offset, sizeof(T), true);
}
template <class T>
AK_INSTR void asc_storealign_pack(T* base, const ak::Reg<T>& v, int32_t offset,
                                  const vector_bool& m) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "packs 16/32/64-bit lanes");
  ak::check_align("asc_storealign_pack", base + offset, 32);
  AK_STORED("asc_storealign_pack", v, sizeof(T));
  ak::store_packed<typename ak::UintOf<sizeof(T) / 2>::type>(base + offset, stored, m);
}
template <class T>
AK_INSTR void asc_storealign_pack_quarter(T* base, const ak::Reg<T>& v, int32_t offset,
                                          const vector_bool& m) {
  static_assert(sizeof(T) == 4, "quarters 32-bit lanes");
  ak::check_align("asc_storealign_pack_quarter", base + offset, 32);
  AK_STORED("asc_storealign_pack_quarter", v, sizeof(T));
  ak::store_packed<uint8_t>(base + offset, stored, m);
}
// Two registers, element by element; the mask gates pairs.
template <class T>
AK_INSTR void asc_storealign_intlv(T* base, const ak::Reg<T>& even, const ak::Reg<T>& odd,
                                   int32_t offset, const vector_bool& m) {
  T* p = base + offset;
  ak::check_align("asc_storealign_intlv", p, 32);
  AK_STORED("asc_storealign_intlv", even, sizeof(T));
  for (int i = 0; i < ak::Reg<T>::N; ++i)
    if (ak::active<T>(m, i)) {
      p[2 * i] = stored.lane[i], p[2 * i + 1] = odd.lane[i];
      AK_TOUCH(p + 2 * i, 2 * sizeof(T), true);
    }
}
// The one-register form interleaves the register's own halves: the footprint TileLang declares for
// it is one register.
template <class T>
AK_INSTR void asc_storealign_intlv(T* base, const ak::Reg<T>& v, int32_t offset,
                                   const vector_bool& m) {
  ak::Reg<T> r;
  for (int i = 0; i < ak::Reg<T>::N / 2; ++i)
    r.lane[2 * i] = v.lane[i], r.lane[2 * i + 1] = v.lane[ak::Reg<T>::N / 2 + i];
  ak::check_align("asc_storealign_intlv.halves", base + offset, 32);
  AK_OUT("asc_storealign_intlv.halves", r, sizeof(T));
  ak::store_norm(base + offset, r, m);
}

AK_INSTR void asc_storealign(uint32_t* base, const vector_bool& v, int32_t offset) {
  ak::check_align("asc_storealign.predicate", base + offset, 4);
  AK_STORED("asc_storealign.predicate", v, 1);
  uint32_t word[8] = {};
  for (int i = 0; i < ak::kRegBytes; ++i) word[i / 32] |= uint32_t(stored.bit[i]) << (i % 32);
  std::memcpy(base + offset, word, 32);
  AK_TOUCH(base + offset, 32, true);
}
AK_INSTR void asc_storealign_pack(uint32_t* base, const vector_bool& v, int32_t offset) {
  ak::check_align("asc_storealign_pack.predicate", base + offset, 4);
  AK_STORED("asc_storealign_pack.predicate", v, 1);
  uint32_t word[4] = {};
  for (int i = 0; i < ak::kRegBytes / 2; ++i)
    word[i / 32] |= uint32_t(stored.bit[2 * i]) << (i % 32);
  std::memcpy(base + offset, word, 16);
  AK_TOUCH(base + offset, 16, true);
}
