// Identity, scalar registers and scalar global-memory access of the running core.
#include <stdarg.h>

#include <cstdio>

#include "record.h"

namespace ak {

uint8_t* ub() {
  Core& c = core();
  return c.block->bank->ub[c.aic ? 0 : c.sub];
}
namespace {
// Notes one instruction of the scalar core; true if a test wants it to fail.
bool noted(const char* op, uint64_t argument = 0, uint64_t other = 0) {
  if (!tracing()) return false;
  record(op, PIPE_S, {}, argument, other);
  return fault_of(op) != 0;
}
}  // namespace

bool is_aic() { return core().aic != noted("ASC_IS_AIC"); }
bool is_aiv() { return core().aic == noted("ASC_IS_AIV"); }
uint32_t sub_block() { return core().sub ^ uint32_t(noted("asc_get_sub_block_id")); }
void init_core() {
  if (!noted("asc_init")) core().modes = Modes{};
}

void note(uint16_t, pipe_t) {}

void print(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vfprintf(stdout, format, args);
  va_end(args);
  std::fflush(stdout);
}

bool enter_simd(uint32_t at) {
  site = at;
  if (tracing()) record("simd_vf", PIPE_V, {});
  core().in_simd = !control();
  return !control();
}
void leave_simd() {
  core().in_simd = false;
  if (tracing()) record("simd_vf.end", PIPE_V, {});
}

void set_pad_value(uint32_t bits) {
  if (!noted("asc_set_copy_pad_val", bits)) core().modes.pad_value = bits;
}
void set_nz_para(uint32_t count, uint32_t row_stride, uint32_t c0_stride, uint32_t matrix_stride) {
  if (noted("asc_set_gm2l1_nz_para", c0_stride, matrix_stride)) return;
  Modes& m = core().modes;
  m.nz_count = count, m.nz_row_stride = row_stride, m.nz_c0_stride = c0_stride;
  m.nz_matrix_stride = matrix_stride;
}
void set_atomic(Atomic op, Dtype type) {
  Atomic was = core().modes.atomic;
  core().modes.atomic = op, core().modes.atomic_type = type;
  if (!tracing()) return;
#define AK_NAMES(OP)                                                                               \
  {"asc_set_atomic_" OP "_float", "asc_set_atomic_" OP "_float16", "asc_set_atomic_" OP "_bfloat", \
   "asc_set_atomic_" OP "_int8",  "asc_set_atomic_" OP "_int16",   "asc_set_atomic_" OP "_int32"}
  constexpr const char* names[3][6] = {AK_NAMES("add"), AK_NAMES("max"), AK_NAMES("min")};
#undef AK_NAMES
  int column = type == Dtype::F32    ? 0
               : type == Dtype::F16  ? 1
               : type == Dtype::BF16 ? 2
               : type == Dtype::S8   ? 3
               : type == Dtype::S16  ? 4
                                     : 5;
  if (noted(op == Atomic::None ? "asc_set_atomic_none" : names[int(op) - 1][column]))
    core().modes.atomic = was;
}
void set_hf32(bool on) {
  if (!noted(on ? "asc_enable_hf32" : "asc_disable_hf32")) core().modes.hf32 = on;
}
void set_hf32_round(asc_hf32_round_mode mode) {
  if (!noted("asc_set_hf32_round_mode", uint64_t(mode))) core().modes.hf32_round = mode;
}
// The order in which the matrix unit walks its result changes time, not values.
void set_mmad_direction(bool n_first) {
  noted(n_first ? "asc_set_mmad_direction_n" : "asc_set_mmad_direction_m");
}
void set_fixpipe_nd(uint32_t count, uint32_t src_stride, uint32_t dst_stride) {
  if (noted("asc_set_l0c_copy_nz_para", count)) return;
  Modes& m = core().modes;
  m.nd_count = count, m.nd_src_stride = src_stride, m.nd_dst_stride = dst_stride;
}

uint64_t load_dev(const void* p, int bytes) {
  check_gm("asc_load_dev", p, uint64_t(bytes));
  if (control()) needs_data("asc_load_dev reads global memory");
  Core& c = core();
  if (tracing()) record("asc_load_dev", PIPE_S, {range(Space::GM, p, uint64_t(bytes), false)});
  // A loop that reads global memory may be waiting for another core: let the others run.
  if (++c.polls % 64 == 0) {
    c.polling = true;
    yield();
  }
  uint64_t v = 0;
  switch (bytes) {
    case 1:
      v = __atomic_load_n(static_cast<const uint8_t*>(p), __ATOMIC_ACQUIRE);
      break;
    case 2:
      v = __atomic_load_n(static_cast<const uint16_t*>(p), __ATOMIC_ACQUIRE);
      break;
    case 4:
      v = __atomic_load_n(static_cast<const uint32_t*>(p), __ATOMIC_ACQUIRE);
      break;
    default:
      v = __atomic_load_n(static_cast<const uint64_t*>(p), __ATOMIC_ACQUIRE);
      break;
  }
  spoil("asc_load_dev", &v, uint64_t(bytes), uint32_t(bytes));
  return v;
}
void store_dev(void* p, uint64_t bits, int bytes) {
  check_gm("asc_store_dev", p, uint64_t(bytes));
  if (control()) return;
  if (tracing()) record("asc_store_dev", PIPE_S, {range(Space::GM, p, uint64_t(bytes), true)});
  switch (bytes) {
    case 1:
      __atomic_store_n(static_cast<uint8_t*>(p), uint8_t(bits), __ATOMIC_RELEASE);
      break;
    case 2:
      __atomic_store_n(static_cast<uint16_t*>(p), uint16_t(bits), __ATOMIC_RELEASE);
      break;
    case 4:
      __atomic_store_n(static_cast<uint32_t*>(p), uint32_t(bits), __ATOMIC_RELEASE);
      break;
    default:
      __atomic_store_n(static_cast<uint64_t*>(p), bits, __ATOMIC_RELEASE);
      break;
  }
  spoil("asc_store_dev", p, uint64_t(bytes), uint32_t(bytes));
  worker->launch->epoch.fetch_add(1);
}

}  // namespace ak
