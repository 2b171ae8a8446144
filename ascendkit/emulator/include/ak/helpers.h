// What hand-written helpers call beyond TileLang's own output: stores of squeezed lanes at any
// element, the count they keep, the buffer that the cores of a block share, and the library's sort.
#pragma once

#include "ak/issue.h"

// ---- squeezing stores
// ----------------------------------------------------------------------------
enum asc_special_register : uint8_t { SPR_AR };  // bytes kept by squeezing stores since their init

// The end of what was stored that does not fill a 32-byte block yet; finalize writes it.
struct vector_store_unalign {
  alignas(32) uint8_t held[ak::kBlockBytes];
  uint32_t bytes = 0;
};

AK_INSTR void asc_squeeze_and_storeunalign_init() {
  uint32_t kept = 0;
  AK_OUT("asc_squeeze_and_storeunalign_init", kept, 4);
  ak::set_squeezed(kept);
}
// Active lanes move to the bottom of `packed` and follow, in memory, what earlier calls kept.
template <class T>
AK_INSTR void asc_squeeze_and_storeunalign(T* base, ak::Reg<T>& packed, vector_store_unalign& state,
                                           const ak::Reg<T>& a, const vector_bool& m) {
  const char* op = "asc_squeeze_and_storeunalign";
  ak::check_align(op, base, sizeof(T));
  uint32_t bytes = sizeof(T) * uint32_t(ak::squeeze_lanes(packed, a, m));
  AK_OUT("asc_squeeze_and_storeunalign", packed, sizeof(T));
  ak::append_squeezed(op, base, packed.lane, bytes, state.held, &state.bytes);
}
template <class T>
AK_INSTR void asc_squeeze_and_storeunalign_finalize(T* base, vector_store_unalign& state) {
  AK_OUT("asc_squeeze_and_storeunalign_finalize", state.held, sizeof(T));
  ak::finish_squeezed("asc_squeeze_and_storeunalign_finalize", base, state.held, &state.bytes);
}
// A special register to the unified buffer.
template <class T>
AK_INSTR void sprsts(asc_special_register which, T* base, int32_t offset) {
  static_assert(sizeof(T) == 4, "sprsts stores 32 bits");
  if (which != SPR_AR || offset != 0)
    ak::fail("AK-UNSUPPORTED-007", "sprsts of another register than SPR_AR, or at offset %d",
             offset);
  ak::check_align("sprsts", base, sizeof(T));
  uint32_t kept = ak::squeezed("sprsts");
  AK_OUT("sprsts", kept, 4);
  std::memcpy(base, &kept, 4);
  AK_TOUCH(base, 4, true);
}
inline uint64_t asc_get_squeeze_status() { return ak::squeeze_status(); }

// ---- loop counts of the copies between global memory and the unified buffer
// ------------------------
inline void asc_set_gm2ub_loop_size(uint64_t first, uint64_t second) {
  ak::set_loop_size("asc_set_gm2ub_loop_size", first, second);
}
inline void asc_set_ub2gm_loop_size(uint64_t first, uint64_t second) {
  ak::set_loop_size("asc_set_ub2gm_loop_size", first, second);
}

// ---- the few names of the class library
// ----------------------------------------------------------
namespace AscendC {
inline uint64_t GetSsbufBaseAddr() { return ak::shared_scalars(); }

enum class TPosition : uint8_t { VECCALC };
// `count` elements at byte `offset` of the unified buffer.
template <class T>
struct LocalTensor {
  T* data;
  uint32_t count;
  LocalTensor(TPosition, uint32_t offset, uint32_t count)
      : data(reinterpret_cast<T*>(ak::ub() + offset)), count(count) {}
};
struct SortConfig {};
inline constexpr SortConfig DEFAULT_SORT_CONFIG;

// Ascending, with the place each element came from.
template <class T, bool MODE, SortConfig CONFIG>
inline void Sort(const LocalTensor<T>& sorted, const LocalTensor<uint32_t>& places,
                 const LocalTensor<T>& source, const LocalTensor<uint8_t>& temporary,
                 uint32_t count) {
  static_assert(std::is_same_v<T, int32_t> && MODE,
                "AscendC::Sort is known as Sort<int32_t, true, DEFAULT_SORT_CONFIG> only");
  for (uint32_t have : {sorted.count, places.count, source.count})
    if (have < count)
      ak::fail("AK-BOUNDS-002", "AscendC::Sort of %u elements: a tensor holds %u", count, have);
  ak::sort({sorted.data, places.data, source.data, temporary.data, temporary.count, count});
}
}  // namespace AscendC
