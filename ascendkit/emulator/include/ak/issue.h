// The C API calls of the scalar core: synchronisation, copies, matrix unit. Thin typed fronts.
#pragma once

#include "ak/merging.h"

#define ASC_IS_AIC (::ak::is_aic())
#define ASC_IS_AIV (::ak::is_aiv())

inline void asc_init() { ak::init_core(); }
inline uint32_t asc_get_sub_block_id() { return ak::sub_block(); }

inline void asc_sync_notify(pipe_t from, pipe_t to, event_t id) { ak::sync_notify(from, to, id); }
inline void asc_sync_wait(pipe_t from, pipe_t to, event_t id) { ak::sync_wait(from, to, id); }
inline void asc_sync() { ak::sync_all(); }
inline void asc_sync_pipe(pipe_t pipe) { ak::sync_pipe(pipe); }
inline void asc_lock(pipe_t pipe, uint32_t id, asc_lock_mode mode = ASC_LOCK_BLOCK) {
  ak::lock(pipe, id, mode);
}
inline void asc_unlock(pipe_t pipe, uint32_t id, asc_lock_mode mode = ASC_LOCK_BLOCK) {
  ak::unlock(pipe, id, mode);
}
#define AK_CROSS(NAME, SCOPE)                                      \
  inline void asc_sync_##NAME##_arrive(pipe_t pipe, uint32_t id) { \
    ak::cross_arrive(ak::Scope::SCOPE, pipe, id);                  \
  }                                                                \
  inline void asc_sync_##NAME##_wait(pipe_t pipe, uint32_t id) {   \
    ak::cross_wait(ak::Scope::SCOPE, pipe, id);                    \
  }
AK_CROSS(inter, Inter)
AK_CROSS(subblock, Subblock)
AK_CROSS(block, Block)
AK_CROSS(intra, Intra)
#undef AK_CROSS

namespace ak {
// Pointers into L1 and L0 are offsets from zero; they are never dereferenced by the kernel.
inline uint64_t offset_of(const void* p) { return uint64_t(reinterpret_cast<uintptr_t>(p)); }
}  // namespace ak

template <class T>
inline void asc_copy_gm2ub_align(T* dst, T* src, uint32_t bursts, uint32_t bytes, uint32_t left_pad,
                                 uint32_t right_pad, bool pad, asc_load_l2_cache_mode,
                                 int64_t src_stride, int64_t dst_stride) {
  ak::gm2ub({dst, src, bursts, bytes, left_pad, right_pad, sizeof(T), pad, src_stride, dst_stride});
}
template <class T>
inline void asc_copy_ub2gm_align(T* dst, T* src, uint32_t bursts, uint32_t bytes,
                                 asc_store_l2_cache_mode, int64_t dst_stride, int64_t src_stride) {
  ak::ub2gm({dst, src, bursts, bytes, dst_stride, src_stride});
}
inline void asc_copy_ub2l1(void* dst, void* src, uint32_t bursts, uint32_t length, uint32_t src_gap,
                           uint32_t dst_gap) {
  ak::ub2l1(ak::offset_of(dst), src, bursts, length, src_gap, dst_gap);
}
template <class T>
inline void asc_set_copy_pad_val(T value) {
  static_assert(sizeof(T) <= 4, "pad values have at most 32 bits");
  uint32_t bits = 0;
  for (unsigned i = 0; i < 4; i += sizeof(T))
    std::memcpy(reinterpret_cast<char*>(&bits) + i, &value, sizeof(T));
  ak::set_pad_value(bits);
}
inline void asc_set_gm2l1_nz_para(uint16_t count, uint16_t row_stride, uint16_t c0_stride,
                                  uint16_t matrix_stride) {
  ak::set_nz_para(count, row_stride, c0_stride, matrix_stride);
}
#define AK_GM2L1(NAME, TRANSPOSE)                                                             \
  template <class T, class S>                                                                 \
  inline void NAME(T* dst, S* src, int64_t row_stride, asc_load_l2_cache_mode, uint32_t n,    \
                   uint32_t d, int64_t matrix_stride, bool small_c0) {                        \
    static_assert(sizeof(T) == sizeof(S), "GM and L1 elements have one width");               \
    ak::gm2l1({ak::offset_of(dst), src, row_stride, n, d, matrix_stride, small_c0, TRANSPOSE, \
               sizeof(T)});                                                                   \
  }
AK_GM2L1(asc_copy_gm2l1_nd2nz, false)
AK_GM2L1(asc_copy_gm2l1_dn2nz, true)
#undef AK_GM2L1

struct asc_fill_l1_para {
  uint64_t repeat, blk_num, dst_gap;
};
template <class T>
inline void asc_fill_l1(T* dst, uint32_t value, asc_fill_l1_para p) {
  ak::fill_l1(ak::offset_of(dst), value, sizeof(T), p.repeat, p.blk_num, p.dst_gap);
}

#define AK_L1_TO_L0(NAME, TO_B, TRANSPOSE)                                                  \
  template <class T>                                                                        \
  inline void NAME(T* dst, T* src, uint32_t m_start, uint32_t k_start, uint32_t m_step,     \
                   uint32_t k_step, uint32_t src_stride, uint32_t dst_stride) {             \
    constexpr auto type = ak::dtype_of<T>();                                                \
    constexpr bool nibbles = type == ak::Dtype::E2M1 || type == ak::Dtype::E1M2;            \
    ak::l1_to_l0({ak::offset_of(dst), ak::offset_of(src), m_start, k_start, m_step, k_step, \
                  src_stride, dst_stride, nibbles ? 4u : 8u * unsigned(sizeof(T)), TO_B,    \
                  TRANSPOSE});                                                              \
  }
AK_L1_TO_L0(asc_copy_l12l0a, false, false)
AK_L1_TO_L0(asc_copy_l12l0a_transpose, false, true)
AK_L1_TO_L0(asc_copy_l12l0b, true, false)
AK_L1_TO_L0(asc_copy_l12l0b_transpose, true, true)
#undef AK_L1_TO_L0

#define AK_SCALES(NAME, TO_B)                                                                    \
  inline void NAME(uint64_t dst, fp8_e8m0_t* src, uint32_t x_start, uint32_t y_start,            \
                   uint32_t x_step, uint32_t y_step, uint32_t src_stride, uint32_t dst_stride) { \
    ak::load_scales({dst, ak::offset_of(src), x_start, y_start, x_step, y_step, src_stride,      \
                     dst_stride, TO_B});                                                         \
  }
AK_SCALES(asc_copy_l12l0a_mx, false)
AK_SCALES(asc_copy_l12l0b_mx, true)
#undef AK_SCALES

#define AK_MMAD(NAME, SCALED)                                                                     \
  template <class C, class A, class B>                                                            \
  inline void NAME(C* c, A* a, B* b, uint32_t m, uint32_t k, uint32_t n, uint32_t unit_flag,      \
                   bool gemv_off, bool bias, bool clear) {                                        \
    ak::mmad({ak::offset_of(c), ak::offset_of(a), ak::offset_of(b), m, k, n, unit_flag, gemv_off, \
              bias, clear, SCALED, ak::dtype_of<A>(), ak::dtype_of<B>(), ak::dtype_of<C>()});     \
  }
AK_MMAD(asc_mmad, false)
AK_MMAD(asc_mmad_mx, true)
#undef AK_MMAD
inline void asc_enable_hf32() { ak::set_hf32(true); }
inline void asc_disable_hf32() { ak::set_hf32(false); }
inline void asc_set_hf32_round_mode(asc_hf32_round_mode mode) { ak::set_hf32_round(mode); }
inline void asc_set_mmad_direction_m() { ak::set_mmad_direction(false); }
inline void asc_set_mmad_direction_n() { ak::set_mmad_direction(true); }

inline void asc_set_l0c_copy_nz_para(uint32_t count, uint32_t src_stride, uint32_t dst_stride) {
  ak::set_fixpipe_nd(count, src_stride, dst_stride);
}
template <class D, class S>
inline void asc_copy_l0c2gm(D* dst, S* src, uint32_t n, uint32_t m, uint32_t dst_stride,
                            uint32_t src_stride, asc_store_l2_cache_mode, asc_unit_flag_mode unit,
                            asc_quant_mode quant, asc_relu_pre_mode relu, bool split, bool nz2nd,
                            bool nz2dn, bool clip_relu) {
  ak::fixpipe({dst, ak::offset_of(src), n, m, dst_stride, src_stride, 0, 0, unit, quant, relu,
               split, nz2nd, nz2dn, clip_relu, false, ak::dtype_of<S>(), ak::dtype_of<D>()});
}
template <class D, class S>
inline void asc_copy_l0c2ub(D* dst, S* src, uint32_t n, uint32_t m, uint32_t dst_stride,
                            uint32_t src_stride, uint32_t sub_block, asc_dual_dst_mode dual,
                            asc_unit_flag_mode unit, asc_quant_mode quant, asc_relu_pre_mode relu,
                            bool split, bool nz2nd, bool nz2dn, bool clip_relu) {
  ak::fixpipe({dst, ak::offset_of(src), n, m, dst_stride, src_stride, sub_block, dual, unit, quant,
               relu, split, nz2nd, nz2dn, clip_relu, true, ak::dtype_of<S>(), ak::dtype_of<D>()});
}

#define AK_ATOMIC(OP, KIND)                                                                       \
  inline void asc_set_atomic_##OP##_float() { ak::set_atomic(ak::Atomic::KIND, ak::Dtype::F32); } \
  inline void asc_set_atomic_##OP##_float16() {                                                   \
    ak::set_atomic(ak::Atomic::KIND, ak::Dtype::F16);                                             \
  }                                                                                               \
  inline void asc_set_atomic_##OP##_bfloat() {                                                    \
    ak::set_atomic(ak::Atomic::KIND, ak::Dtype::BF16);                                            \
  }                                                                                               \
  inline void asc_set_atomic_##OP##_int8() { ak::set_atomic(ak::Atomic::KIND, ak::Dtype::S8); }   \
  inline void asc_set_atomic_##OP##_int16() { ak::set_atomic(ak::Atomic::KIND, ak::Dtype::S16); } \
  inline void asc_set_atomic_##OP##_int32() { ak::set_atomic(ak::Atomic::KIND, ak::Dtype::S32); }
AK_ATOMIC(add, Add)
AK_ATOMIC(max, Max)
AK_ATOMIC(min, Min)
#undef AK_ATOMIC
inline void asc_set_atomic_none() { ak::set_atomic(ak::Atomic::None, ak::Dtype::Other); }

template <class T>
inline T asc_load_dev(T* p) {
  static_assert(std::is_unsigned_v<T>, "asc_load_dev reads unsigned integers");
  return T(ak::load_dev(p, sizeof(T)));
}
template <class T>
inline void asc_store_dev(T* p, T value) {
  ak::store_dev(p, value, sizeof(T));
}
