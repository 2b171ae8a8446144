// Copies between global memory, the unified buffer and L1.
#include "gm_write.h"
#include "mutate.h"
#include "record.h"

namespace ak {
namespace {

void check_bursts(const char* op, const void* p, uint32_t bursts, uint64_t bytes, int64_t stride,
                  void (*check)(const char*, const void*, uint64_t)) {
  if (bursts == 0 || bytes == 0) return;
  check(op, p, bytes);
  if (bursts > 1) check(op, static_cast<const char*>(p) + stride * int64_t(bursts - 1), bytes);
}
void check_ub_any(const char* op, const void* p, uint64_t bytes) { check_ub(op, p, bytes, 1); }
void need_vector_core(const char* op) {
  if (core().aic) fail("AK-CORE-001", "%s runs on a vector core, not on the cube core", op);
}
void need_cube_core(const char* op) {
  if (!core().aic) fail("AK-CORE-001", "%s runs on the cube core, not on a vector core", op);
}

void do_gm2ub(const Gm2Ub& p, uint32_t pad_value, uint8_t* base) {
  const char* op = "asc_copy_gm2ub_align";
  uint32_t left = p.pad ? p.left_pad * p.elem_bytes : 0;
  uint32_t right = p.pad ? p.right_pad * p.elem_bytes : 0;
  uint64_t row = uint64_t(left) + p.burst_bytes + right;
  auto fill = [&](char* at, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) at[i] = reinterpret_cast<const char*>(&pad_value)[i % 4];
  };
  for (uint32_t b = 0; b < turns(p.bursts); ++b) {
    char* dst = static_cast<char*>(p.dst) + p.dst_stride * int64_t(b);
    fill(dst, left);
    std::memcpy(dst + left, static_cast<const char*>(p.src) + p.src_stride * int64_t(b),
                p.burst_bytes);
    fill(dst + left + p.burst_bytes, right);
  }
  if (p.bursts) spoil(op, p.dst, row, p.elem_bytes);
  if (tracing())
    record(op, PIPE_MTE2,
           {rows(Space::GM, uint64_t(p.src), p.bursts, p.burst_bytes, p.src_stride, false),
            rows(Space::UB, uint64_t(static_cast<uint8_t*>(p.dst) - base), p.bursts, row,
                 p.dst_stride, true, core().sub)},
           left);
}

void do_ub2gm(const Ub2Gm& p, Atomic atomic, Dtype type, uint8_t* base) {
  for (uint32_t b = 0; b < turns(p.bursts); ++b)
    write_gm(static_cast<char*>(p.dst) + p.dst_stride * int64_t(b),
             static_cast<const char*>(p.src) + p.src_stride * int64_t(b), p.burst_bytes, atomic,
             type);
  if (p.bursts) spoil("asc_copy_ub2gm_align", p.dst, p.burst_bytes, 1);
  worker->launch->epoch.fetch_add(1, std::memory_order_relaxed);
  Access to = rows(Space::GM, uint64_t(p.dst), p.bursts, p.burst_bytes, p.dst_stride, true);
  to.atomic = atomic != Atomic::None;
  if (tracing())
    record("asc_copy_ub2gm_align", PIPE_MTE3,
           {rows(Space::UB, uint64_t(static_cast<const uint8_t*>(p.src) - base), p.bursts,
                 p.burst_bytes, p.src_stride, false, core().sub),
            to},
           uint64_t(atomic));
}
}  // namespace

void gm2ub(Gm2Ub p) {
  const char* op = "asc_copy_gm2ub_align";
  if (mutate_fields(op, {{Mutant::Count, p.bursts},
                         {Mutant::Bytes, p.burst_bytes},
                         {Mutant::Source, p.src},
                         {Mutant::Target, p.dst},
                         {Mutant::SourceStride, p.src_stride},
                         {Mutant::TargetStride, p.dst_stride}}))
    return;
  need_vector_core(op);
  if (p.bursts && p.burst_bytes) {
    check_bursts(op, p.src, p.bursts, p.burst_bytes, p.src_stride, check_gm);
    uint64_t row = p.burst_bytes + (p.pad ? uint64_t(p.left_pad + p.right_pad) * p.elem_bytes : 0);
    check_bursts(op, p.dst, p.bursts, row, p.dst_stride, check_ub_any);
    check_ub(op, p.dst, 0, 32);
  }
  uint32_t pad = core().modes.pad_value;
  on_pipe(PIPE_MTE2, [p, pad, base = ub()] { do_gm2ub(p, pad, base); });
}

void ub2gm(Ub2Gm p) {
  const char* op = "asc_copy_ub2gm_align";
  if (mutate_fields(op, {{Mutant::Count, p.bursts},
                         {Mutant::Bytes, p.burst_bytes},
                         {Mutant::Source, p.src},
                         {Mutant::Target, p.dst},
                         {Mutant::SourceStride, p.src_stride},
                         {Mutant::TargetStride, p.dst_stride}}))
    return;
  need_vector_core(op);
  if (p.bursts && p.burst_bytes) {
    check_bursts(op, p.dst, p.bursts, p.burst_bytes, p.dst_stride, check_gm);
    check_bursts(op, p.src, p.bursts, p.burst_bytes, p.src_stride, check_ub_any);
    check_ub(op, p.src, 0, 32);
  }
  Modes& m = core().modes;
  on_pipe(PIPE_MTE3, [p, atomic = m.atomic, type = m.atomic_type, base = ub()] {
    do_ub2gm(p, atomic, type, base);
  });
}

// Lengths and gaps count 32-byte blocks.
void ub2l1(uint64_t dst, const void* src, uint32_t bursts, uint32_t length, uint32_t src_gap,
           uint32_t dst_gap) {
  const char* op = "asc_copy_ub2l1";
  if (mutate_fields(op, {{Mutant::Count, bursts},
                         {Mutant::Bytes, length},
                         {Mutant::Source, src},
                         {Mutant::Target, dst},
                         {Mutant::SourceStride, src_gap},
                         {Mutant::TargetStride, dst_gap}}))
    return;
  need_vector_core(op);
  if (!core().block->cube()) fail("AK-CORE-001", "%s needs a cube core in the kernel", op);
  uint64_t bytes = uint64_t(length) * 32, src_step = bytes + uint64_t(src_gap) * 32,
           dst_step = bytes + uint64_t(dst_gap) * 32;
  if (bursts == 0 || length == 0) return;
  check_ub(op, src, src_step * (bursts - 1) + bytes, 32);
  check_local(op, Space::L1, dst, dst_step * (bursts - 1) + bytes, 32);
  on_pipe(PIPE_MTE3, [=, base = ub(), l1 = core().block->bank->l1] {
    for (uint32_t b = 0; b < turns(bursts); ++b)
      std::memcpy(l1 + dst + dst_step * b, static_cast<const uint8_t*>(src) + src_step * b, bytes);
    spoil(op, l1 + dst, bytes, 1);
    if (tracing())
      record(op, PIPE_MTE3,
             {rows(Space::UB, uint64_t(static_cast<const uint8_t*>(src) - base), bursts, bytes,
                   int64_t(src_step), false, core().sub),
              rows(Space::L1, dst, bursts, bytes, int64_t(dst_step), true)});
  });
}

// Row-major (or, transposing, column-major) matrices in global memory become NZ tiles in L1:
// element (n, d) lies in the 32-byte row n of column group d / C0. The last group is filled up with
// zeros.
void gm2l1(Gm2L1 p) {
  const char* op = p.transpose ? "asc_copy_gm2l1_dn2nz" : "asc_copy_gm2l1_nd2nz";
  if (mutate_fields(op, {{Mutant::Count, p.n},
                         {Mutant::Bytes, p.d},
                         {Mutant::Source, p.src},
                         {Mutant::Target, p.dst},
                         {Mutant::SourceStride, p.row_stride}}))
    return;
  need_cube_core(op);
  if (p.small_c0)
    fail("AK-UNSUPPORTED-001", "%s with small C0 (4-channel tiles) is not emulated", op);
  Modes& m = core().modes;
  if (p.n == 0 || p.d == 0 || m.nz_count == 0) return;
  uint64_t es = p.elem_bytes, c0 = 32 / es, groups = (p.d + c0 - 1) / c0;
  uint64_t row = uint64_t(m.nz_row_stride) * 32, group = uint64_t(m.nz_c0_stride) * 32,
           matrix = uint64_t(m.nz_matrix_stride) * 32;
  uint64_t last = matrix * (m.nz_count - 1) + group * (groups - 1) + row * (p.n - 1) + 32;
  check_local(op, Space::L1, p.dst, last, 32);
  uint64_t lines = p.transpose ? p.d : p.n, line = uint64_t(p.transpose ? p.n : p.d) * es;
  for (uint32_t k = 0; k < m.nz_count; ++k)
    check_bursts(op, static_cast<const char*>(p.src) + p.matrix_stride * int64_t(k),
                 uint32_t(lines), line, p.row_stride, check_gm);
  on_pipe(PIPE_MTE2, [=, count = m.nz_count, l1 = core().block->bank->l1] {
    for (uint32_t k = 0; k < turns(count); ++k) {
      const char* src = static_cast<const char*>(p.src) + p.matrix_stride * int64_t(k);
      uint8_t* dst = l1 + p.dst + matrix * k;
      for (uint64_t g = 0; g < groups; ++g) {
        uint64_t have = std::min<uint64_t>(c0, p.d - g * c0);
        for (uint64_t n = 0; n < p.n; ++n) {
          uint8_t* at = dst + g * group + n * row;
          if (!p.transpose)
            std::memcpy(at, src + p.row_stride * int64_t(n) + g * 32, have * es);
          else
            for (uint64_t j = 0; j < have; ++j)
              std::memcpy(at + j * es, src + p.row_stride * int64_t(g * c0 + j) + n * es, es);
          std::memset(at + have * es, 0, 32 - have * es);
        }
      }
    }
    spoil(op, l1 + p.dst, 32, uint32_t(es));
    for (uint32_t k = 0; k < count && tracing(); ++k) {
      Access from = rows(Space::GM, uint64_t(p.src) + uint64_t(p.matrix_stride) * k, lines, line,
                         p.row_stride, false),
             to = rows(Space::L1, p.dst + matrix * k, groups, row * (p.n - 1) + 32, int64_t(group),
                       true);
      (k ? record_more : record)(op, PIPE_MTE2, {from, to}, p.n, p.d);
    }
  });
}

void fill_l1(uint64_t dst, uint32_t value, uint32_t elem_bytes, uint64_t repeat, uint64_t blocks,
             uint64_t gap) {
  const char* op = "asc_fill_l1";
  if (mutate_fields(op, {{Mutant::Count, repeat},
                         {Mutant::Bytes, blocks},
                         {Mutant::Target, dst},
                         {Mutant::TargetStride, gap}}))
    return;
  need_cube_core(op);
  if (repeat == 0 || blocks == 0) return;
  uint64_t bytes = blocks * 32, step = bytes + gap * 32;
  check_local(op, Space::L1, dst, step * (repeat - 1) + bytes, 32);
  on_pipe(PIPE_MTE2, [=, l1 = core().block->bank->l1] {
    for (uint64_t r = 0; r < turns(repeat); ++r)
      for (uint64_t i = 0; i < bytes; i += elem_bytes)
        std::memcpy(l1 + dst + r * step + i, &value, elem_bytes);
    spoil(op, l1 + dst, bytes, elem_bytes);
    if (tracing())
      record(op, PIPE_MTE2, {rows(Space::L1, dst, repeat, bytes, int64_t(step), true)}, value);
  });
}

}  // namespace ak
