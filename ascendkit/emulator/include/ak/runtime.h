// What a kernel calls in the precompiled runtime. Plain structs and functions only: this is the
// ABI.
#pragma once

#include "ak/small_vec.h"

#define AK_API __attribute__((visibility("default")))

// Identity of the running core or SIMT thread; the scheduler rewrites them on every switch.
extern AK_API __thread uint32_t block_idx;
extern AK_API __thread uint3 threadIdx, blockIdx;
extern AK_API __thread uint3 blockDim, gridDim;

// What a mutant adds in a numbered place of a prepared source (runtime/mutate.h), 0 without one.
extern "C" AK_API int32_t ak_shift(uint32_t place);

// TileLang's own names of the 8-bit floats outside vector functions.
namespace tl {
struct float_e4m3_t;
struct float_e5m2_t;
}  // namespace tl

namespace ak {

enum class Space : uint8_t { GM, UB, L1, L0A, L0B, L0C, BT, FB, MXA, MXB, SS };
// Element formats the matrix unit and FixPipe tell apart.
enum class Dtype : uint8_t {
  F32,
  F16,
  BF16,
  S32,
  S8,
  U8,
  E4M3,
  E5M2,
  E2M1,
  E1M2,
  S16,
  U16,
  U32,
  Other
};

template <class T>
constexpr Dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return Dtype::F32;
  else if constexpr (std::is_same_v<T, half>)
    return Dtype::F16;
  else if constexpr (std::is_same_v<T, bfloat16_t>)
    return Dtype::BF16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return Dtype::S32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return Dtype::U32;
  else if constexpr (std::is_same_v<T, int16_t>)
    return Dtype::S16;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return Dtype::U16;
  else if constexpr (std::is_same_v<T, int8_t>)
    return Dtype::S8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return Dtype::U8;
  else if constexpr (std::is_same_v<T, float8_e4m3_t> || std::is_same_v<T, tl::float_e4m3_t>)
    return Dtype::E4M3;
  else if constexpr (std::is_same_v<T, float8_e5m2_t> || std::is_same_v<T, tl::float_e5m2_t>)
    return Dtype::E5M2;
  else if constexpr (std::is_same_v<T, float4_e2m1x2_t>)
    return Dtype::E2M1;
  else if constexpr (std::is_same_v<T, float4_e1m2x2_t>)
    return Dtype::E1M2;
  else
    return Dtype::Other;
}

// ---- identity, errors, output --------------------------------------------------------------
extern AK_API __thread uint32_t site;  // line of the generated source being executed
AK_API uint8_t* ub();                  // unified buffer seen by this core (AIC: that of AIV0)
AK_API bool is_aic();
AK_API bool is_aiv();
AK_API uint32_t sub_block();
[[noreturn]] AK_API void fail(const char* code, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
[[noreturn]] AK_API void assert_failed(const char* condition);
AK_API void print(const char* format, ...) __attribute__((format(printf, 1, 2)));
AK_API void init_core();

// ---- pipes -----------------------------------------------------------------------------------
// A task is run at once when its pipe is idle, else queued behind the pipe's blocked wait.
struct Task {
  virtual bool step() = 0;  // false: still blocked
  virtual ~Task() = default;
};
AK_API bool pipe_idle(pipe_t pipe);
AK_API void enqueue(pipe_t pipe, Task* task);
AK_API void note(uint16_t op, pipe_t pipe);  // counts an executed instruction

template <class F>
struct RunTask final : Task {
  F run;
  explicit RunTask(F f) : run(std::move(f)) {}
  bool step() override {
    run();
    return true;
  }
};
template <class F>
inline void on_pipe(pipe_t pipe, F f) {
  if (pipe_idle(pipe))
    f();
  else
    enqueue(pipe, new RunTask<F>(std::move(f)));
}

// A vector function: arguments are evaluated at issue, the body runs on the vector pipe.
// False: the launch follows control flow only, the body is not to run.
AK_API bool enter_simd(uint32_t at);
AK_API void leave_simd();
template <class F, class... A>
inline void simd_vf(F f, A... args) {
  uint32_t at = site;
  on_pipe(PIPE_V, [=] {
    if (!enter_simd(at)) return;
    f(args...);
    leave_simd();
  });
}

AK_API void sync_notify(pipe_t source, pipe_t destination, uint32_t id);
AK_API void sync_wait(pipe_t source, pipe_t destination, uint32_t id);
AK_API void sync_all();
AK_API void sync_pipe(pipe_t pipe);
AK_API void lock(pipe_t pipe, uint32_t id, asc_lock_mode mode);
AK_API void unlock(pipe_t pipe, uint32_t id, asc_lock_mode mode);
enum class Scope : uint8_t { Inter, Subblock, Block, Intra };
AK_API void cross_arrive(Scope scope, pipe_t pipe, uint32_t id);
AK_API void cross_wait(Scope scope, pipe_t pipe, uint32_t id);

// ---- copies ----------------------------------------------------------------------------------
struct Gm2Ub {
  void* dst;
  const void* src;
  uint32_t bursts, burst_bytes, left_pad, right_pad, elem_bytes;
  bool pad;
  int64_t src_stride, dst_stride;
};
AK_API void gm2ub(Gm2Ub p);
struct Ub2Gm {
  void* dst;
  const void* src;
  uint32_t bursts, burst_bytes;
  int64_t dst_stride, src_stride;
};
AK_API void ub2gm(Ub2Gm p);
AK_API void ub2l1(uint64_t dst, const void* src, uint32_t bursts, uint32_t length, uint32_t src_gap,
                  uint32_t dst_gap);
AK_API void set_pad_value(uint32_t bits);
AK_API void set_nz_para(uint32_t count, uint32_t row_stride, uint32_t c0_stride,
                        uint32_t matrix_stride);
struct Gm2L1 {
  uint64_t dst;
  const void* src;
  int64_t row_stride;
  uint32_t n, d;
  int64_t matrix_stride;
  bool small_c0, transpose;
  uint32_t elem_bytes;
};
AK_API void gm2l1(Gm2L1 p);
AK_API void fill_l1(uint64_t dst, uint32_t value, uint32_t elem_bytes, uint64_t repeat,
                    uint64_t blocks, uint64_t gap);
enum class Atomic : uint8_t { None, Add, Max, Min };
AK_API void set_atomic(Atomic op, Dtype type);
AK_API uint64_t load_dev(const void* p, int bytes);
AK_API void store_dev(void* p, uint64_t bits, int bytes);

// ---- matrix unit -----------------------------------------------------------------------------
struct L1ToL0 {
  uint64_t dst, src;
  uint32_t m_start, k_start, m_step, k_step, src_stride, dst_stride;
  uint32_t elem_bits;
  bool to_b, transpose;
};
AK_API void l1_to_l0(L1ToL0 p);
struct ScaleLoad {
  uint64_t dst, src;
  uint32_t x_start, y_start, x_step, y_step, src_stride, dst_stride;
  bool to_b;
};
AK_API void load_scales(ScaleLoad p);
struct Mmad {
  uint64_t c, a, b;
  uint32_t m, k, n, unit_flag;
  bool gemv_off, bias, clear, scaled;
  Dtype a_type, b_type, c_type;
};
AK_API void mmad(Mmad p);
AK_API void set_hf32(bool on);
AK_API void set_hf32_round(asc_hf32_round_mode mode);
AK_API void set_mmad_direction(bool n_first);
AK_API void set_fixpipe_nd(uint32_t count, uint32_t src_stride, uint32_t dst_stride);
struct FixPipe {
  void* dst;
  uint64_t src;
  uint32_t n, m, dst_stride, src_stride;
  uint32_t sub_block, dual, unit_flag, quant, relu;
  bool split, nz2nd, nz2dn, clip_relu, to_ub;
  Dtype src_type, dst_type;
};
AK_API void fixpipe(FixPipe p);

// ---- SIMT ------------------------------------------------------------------------------------
AK_API void simt_run(cce::dim3 dim, void (*body)(void*), void* context, uint32_t at);
AK_API void simt_barrier();
AK_API void simt_line(uint32_t line);  // of the warp collective that follows
enum class Warp : uint8_t { ShflXor, Add, Max, Min, Ballot, Active, Sync };
enum class Num : uint8_t { F32, F16, S32, U32, S64, U64 };
AK_API uint64_t simt_warp(Warp op, Num type, uint64_t value, int argument);
AK_API uint32_t simt_lane();
AK_API void simt_atomic_lock();
AK_API void simt_atomic_unlock();

// ---- special state of hand-written kernels ------------------------------------------------------
// Bytes that squeezing stores have kept since their init; -1, not known, after a plain squeeze.
AK_API void set_squeezed(uint32_t bytes);
AK_API void forget_squeezed();
AK_API uint32_t squeezed(const char* op);
AK_API uint64_t squeeze_status();
AK_API void append_squeezed(const char* op, void* base, const void* data, uint32_t bytes,
                            uint8_t* held, uint32_t* held_bytes);
AK_API void finish_squeezed(const char* op, void* base, const uint8_t* held, uint32_t* held_bytes);
AK_API void set_loop_size(const char* op, uint64_t first, uint64_t second);
AK_API uint64_t shared_scalars();  // address of the block's SS buffer
struct Sort {
  int32_t* sorted;
  uint32_t* places;
  int32_t* source;
  uint8_t* scratch;
  uint32_t scratch_bytes, count;
};
AK_API void sort(Sort p);

}  // namespace ak
