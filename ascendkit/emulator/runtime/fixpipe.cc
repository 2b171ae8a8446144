// FixPipe: L0C -> global memory or unified buffer, with NZ -> row-major, conversion and ReLU.
#include "ak/convert.h"
#include "gm_write.h"
#include "mutate.h"
#include "record.h"

namespace ak {
namespace {
// The conversion codes TileLang emits for a float32 accumulator.
enum Quant : uint32_t {
  kNone = 0,
  kF16 = 1,
  kReq8 = 9,
  kFp8 = 13,
  kBf16 = 16,
  kReq4 = 22,
  kDeqS16 = 28
};

uint32_t out_bytes(const FixPipe& p) {
  switch (p.quant) {
    case kNone:
      return 4;
    case kF16:
    case kBf16:
    case kDeqS16:
      return 2;
    default:
      return 1;
  }
}
// One element: relu first, then the conversion.
void put(const FixPipe& p, uint32_t bits, uint8_t* out) {
  if (p.src_type == Dtype::S32) {
    int32_t v = int32_t(bits);
    if (p.relu && v < 0) v = 0;
    std::memcpy(out, &v, 4);
    return;
  }
  float v = bits_to_float(bits);
  if (p.relu && v < 0) v = 0;
  uint16_t h;
  switch (p.quant) {
    case kNone:
      std::memcpy(out, &v, 4);
      return;
    case kF16:
      h = float_to_half_bits(v);
      std::memcpy(out, &h, 2);
      return;
    case kBf16:
      h = float_to_bf16_bits(v);
      std::memcpy(out, &h, 2);
      return;
    case kDeqS16:
      h = uint16_t(float_to_int<int16_t>(v, Round::Even, true));
      std::memcpy(out, &h, 2);
      return;
    case kReq8:
      *out = uint8_t(float_to_int<int8_t>(v, Round::Even, true));
      return;
    default:
      *out = uint8_t(p.dst_type == Dtype::E5M2 ? encode<E5M2>(v, Round::Even, true)
                                               : encode<E4M3>(v, Round::Even, true));
  }
}

// Rows [m0, m0 + m) and columns [n0, n0 + n) of the accumulator to `dst`, row-major.
void drain(const FixPipe& p, const uint8_t* l0c, uint32_t m0, uint32_t m, uint32_t n0, uint32_t n,
           uint8_t* dst, Atomic atomic, Dtype type) {
  const auto* acc = reinterpret_cast<const uint32_t*>(l0c + p.src);
  uint32_t es = out_bytes(p);
  static thread_local std::vector<uint8_t> line;
  auto element = [&](uint32_t r, uint32_t c) {
    return acc[uint64_t(c / 16) * p.src_stride * 16 + uint64_t(r) * 16 + c % 16];
  };
  uint32_t outer = p.nz2dn ? n : m, inner = p.nz2dn ? m : n;
  line.resize(size_t(inner) * es);
  for (uint32_t i = 0; i < outer; ++i) {
    for (uint32_t j = 0; j < inner; ++j)
      put(p, p.nz2dn ? element(m0 + j, n0 + i) : element(m0 + i, n0 + j), &line[size_t(j) * es]);
    write_gm(dst + uint64_t(i) * p.dst_stride * es, line.data(), line.size(), atomic, type);
  }
}
// Columns of a fractal that leaves as it is.
uint32_t nz_columns(const FixPipe& p) {
  uint32_t es = out_bytes(p);
  return p.split ? 8 : (es == 4 ? 16 : 32 / es);
}
// Without NZ -> row-major the fractals stay: column group g starts dst_stride 32-byte rows later.
void drain_nz(const FixPipe& p, const uint8_t* l0c, uint8_t* dst, Atomic atomic, Dtype type) {
  const auto* acc = reinterpret_cast<const uint32_t*>(l0c + p.src);
  uint32_t es = out_bytes(p), c0 = nz_columns(p);
  uint8_t line[64];
  for (uint32_t g = 0; g * c0 < p.n; ++g)
    for (uint32_t r = 0; r < p.m; ++r) {
      uint32_t have = std::min(c0, p.n - g * c0);
      for (uint32_t j = 0; j < have; ++j) {
        uint32_t c = g * c0 + j;
        put(p, acc[uint64_t(c / 16) * p.src_stride * 16 + uint64_t(r) * 16 + c % 16],
            line + j * es);
      }
      write_gm(dst + uint64_t(g) * p.dst_stride * 32 + uint64_t(r) * c0 * es, line, have * es,
               atomic, type);
    }
}
}  // namespace

void fixpipe(FixPipe p) {
  const char* op = p.to_ub ? "asc_copy_l0c2ub" : "asc_copy_l0c2gm";
  if (mutate_fields(op, {{Mutant::Count, p.m},
                         {Mutant::Bytes, p.n},
                         {Mutant::Source, p.src},
                         {Mutant::Target, p.dst},
                         {Mutant::SourceStride, p.src_stride},
                         {Mutant::TargetStride, p.dst_stride}}))
    return;
  if (!core().aic) fail("AK-CORE-001", "%s runs on the cube core", op);
  constexpr uint32_t known[] = {kNone, kF16, kReq8, kFp8, kBf16, kDeqS16};
  bool ok = false;
  for (uint32_t q : known) ok |= q == p.quant;
  if (!ok) fail("AK-UNSUPPORTED-003", "%s with quantisation mode %u is not emulated", op, p.quant);
  if (p.clip_relu || p.relu > 1)
    fail("AK-UNSUPPORTED-004", "%s with clipped or parametric ReLU is not emulated", op);
  if (p.src_type != Dtype::F32 && (p.src_type != Dtype::S32 || p.quant != kNone))
    fail("AK-TYPE-003", "%s converts float32 accumulators; integer ones are copied unchanged", op);
  Modes& modes = core().modes;
  if (modes.nd_count != 1)
    fail("AK-UNSUPPORTED-005", "%s of %u matrices at once is not emulated", op, modes.nd_count);
  if (p.n == 0 || p.m == 0) return;
  if (p.dual && (!p.to_ub || p.quant != kNone))
    fail("AK-CUBE-002", "dual destination copies float32 to UB without conversion");
  if (p.dual == 1 && p.m % 2)
    fail("AK-CUBE-002", "an M-split needs an even number of rows, got %u", p.m);
  if (p.dual == 2 && p.n % 32)
    fail("AK-CUBE-002", "an N-split needs N to be a multiple of 32, got %u", p.n);
  Bank* bank = core().block->bank;
  uint64_t src_bytes = (uint64_t((p.n + 15) / 16 - 1) * p.src_stride + p.m) * 64;
  check_local(op, Space::L0C, p.src, src_bytes, 64);
  uint32_t es = out_bytes(p);
  uint32_t m = p.dual == 1 ? p.m / 2 : p.m, n = p.dual == 2 ? p.n / 2 : p.n;
  uint64_t outer = p.nz2dn ? n : m, inner = p.nz2dn ? m : n;
  bool nz = !p.nz2nd && !p.nz2dn;
  uint64_t columns = nz_columns(p), last_group = (p.n - 1) / columns;
  uint64_t dst_bytes = nz ? last_group * p.dst_stride * 32 +
                                (uint64_t(p.m - 1) * columns + p.n - last_group * columns) * es
                          : ((outer - 1) * p.dst_stride + inner) * es;
  auto* dst = static_cast<uint8_t*>(p.dst);
  if (p.to_ub) {
    if (p.sub_block > 1)
      fail("AK-CUBE-003", "%s to vector core %u: a block has two", op, p.sub_block);
    check_ub(op, dst, dst_bytes, 32);
  } else {
    check_gm(op, dst, dst_bytes);
  }
  Atomic atomic = p.to_ub ? Atomic::None : modes.atomic;
  on_pipe(PIPE_FIX, [=, type = modes.atomic_type] {
    uint64_t offset = uint64_t(dst - bank->ub[0]);
    if (control())
      (void)0;
    else if (nz)
      drain_nz(p, bank->l0c, p.to_ub ? bank->ub[p.sub_block] + offset : dst, atomic, type);
    else if (!p.to_ub)
      drain(p, bank->l0c, 0, m, 0, n, dst, atomic, type);
    else if (!p.dual)
      drain(p, bank->l0c, 0, m, 0, n, bank->ub[p.sub_block] + offset, atomic, type);
    else
      for (uint32_t s = 0; s < 2; ++s)
        drain(p, bank->l0c, p.dual == 1 ? s * m : 0, m, p.dual == 2 ? s * n : 0, n,
              bank->ub[s] + offset, atomic, type);
    spoil(op, p.to_ub ? bank->ub[p.dual ? 0 : p.sub_block] + offset : dst, inner * es, es);
    worker->launch->epoch.fetch_add(1, std::memory_order_relaxed);
    if (!tracing()) return;
    Access read = rows(Space::L0C, p.src, (p.n + 15) / 16, uint64_t(p.m) * 64,
                       int64_t(p.src_stride) * 64, false);
    Space to = p.to_ub ? Space::UB : Space::GM;
    uint64_t base = p.to_ub ? offset : uint64_t(dst);
    auto write = [&](uint32_t s) {
      Access a = nz ? rows(to, base, 1, dst_bytes, 0, true, s)
                    : rows(to, base, outer, inner * es, int64_t(p.dst_stride) * es, true, s);
      a.atomic = atomic != Atomic::None;
      return a;
    };
    uint64_t quant = p.quant | uint64_t(atomic) << 8;
    if (p.dual)
      record(op, PIPE_FIX, {read, write(0), write(1)}, p.unit_flag, quant);
    else
      record(op, PIPE_FIX, {read, write(p.sub_block)}, p.unit_flag, quant);
  });
}

}  // namespace ak
