// L1 -> L0: 512-byte fractals (16 rows of 32 bytes), transposed on request, and the E8M0 scales.
#include <algorithm>

#include "mutate.h"
#include "record.h"

namespace ak {
namespace {

uint32_t get_elem(const uint8_t* p, uint64_t index, uint32_t bits) {
  switch (bits) {
    case 4:
      return (p[index / 2] >> (4 * (index & 1))) & 0xf;
    case 8:
      return p[index];
    case 16:
      return reinterpret_cast<const uint16_t*>(p)[index];
    default:
      return reinterpret_cast<const uint32_t*>(p)[index];
  }
}
void put_elem(uint8_t* p, uint64_t index, uint32_t bits, uint32_t v) {
  switch (bits) {
    case 4: {
      uint32_t shift = 4 * (index & 1);
      p[index / 2] = uint8_t((p[index / 2] & ~(0xfu << shift)) | v << shift);
      break;
    }
    case 8:
      p[index] = uint8_t(v);
      break;
    case 16:
      reinterpret_cast<uint16_t*>(p)[index] = uint16_t(v);
      break;
    default:
      reinterpret_cast<uint32_t*>(p)[index] = v;
      break;
  }
}
}  // namespace

// m counts fractals of 16 rows, k groups of C0 columns. Without transposition fractal (m, k) of the
// source region becomes fractal (m, k) of the tile; with it, element (row, column) becomes element
// (column, row), so that fractals pair up when C0 is not 16.
void l1_to_l0(L1ToL0 p) {
  constexpr const char* names[] = {"asc_copy_l12l0a", "asc_copy_l12l0a_transpose",
                                   "asc_copy_l12l0b", "asc_copy_l12l0b_transpose"};
  const char* op = names[2 * p.to_b + p.transpose];
  if (mutate_fields(op, {{Mutant::Count, p.k_step},
                         {Mutant::Bytes, p.m_step},
                         {Mutant::Source, p.src},
                         {Mutant::Target, p.dst},
                         {Mutant::SourceStride, p.src_stride},
                         {Mutant::TargetStride, p.dst_stride}}))
    return;
  if (!core().aic) fail("AK-CORE-001", "%s runs on the cube core", op);
  if (p.m_step == 0 || p.k_step == 0) return;
  Space space = p.to_b ? Space::L0B : Space::L0A;
  uint64_t c0 = 256 / p.elem_bits;
  uint64_t last_src =
      (uint64_t(p.k_start + p.k_step - 1) * p.src_stride + p.m_start + p.m_step) * 512;
  check_local(op, Space::L1, p.src, last_src, 32);
  uint64_t out_rows = p.transpose ? p.k_step * c0 / 16 : p.m_step;
  uint64_t out_groups = p.transpose ? (p.m_step * 16 + c0 - 1) / c0 : p.k_step;
  if (p.transpose && ((c0 > 16 && p.m_step % (c0 / 16)) || (c0 < 16 && p.k_step % (16 / c0))))
    fail("AK-CUBE-001",
         "%s needs whole groups of fractals: m_step %u, k_step %u for %u-bit elements", op,
         p.m_step, p.k_step, p.elem_bits);
  uint64_t last_dst = ((out_groups - 1) * p.dst_stride + out_rows) * 512;
  check_local(op, space, p.dst, last_dst, 512);
  Bank& bank = *core().block->bank;
  on_pipe(PIPE_MTE1, [=, l1 = bank.l1, l0 = bank.of(space, 0)] {
    const uint8_t* src = l1 + p.src;
    uint8_t* dst = l0 + p.dst;
    if (!p.transpose) {
      for (uint64_t k = 0; k < turns(p.k_step); ++k)
        std::memcpy(dst + k * p.dst_stride * 512,
                    src + (uint64_t(p.k_start + k) * p.src_stride + p.m_start) * 512,
                    uint64_t(p.m_step) * 512);
    } else {
      for (uint64_t r = 0; r < turns(p.m_step * 16ull); ++r)
        for (uint64_t c = 0; c < p.k_step * c0; ++c) {
          uint64_t from = ((p.k_start + c / c0) * p.src_stride + p.m_start + r / 16) * 16 * c0 +
                          (r % 16) * c0 + c % c0;
          uint64_t to = ((r / c0) * p.dst_stride + c / 16) * 16 * c0 + (c % 16) * c0 + r % c0;
          put_elem(dst, to, p.elem_bits, get_elem(src, from, p.elem_bits));
        }
    }
    spoil(op, dst, 512, std::max(1u, p.elem_bits / 8));
    if (tracing())
      record(op, PIPE_MTE1,
             {rows(Space::L1, p.src + (uint64_t(p.k_start) * p.src_stride + p.m_start) * 512,
                   p.k_step, p.m_step * 512ull, int64_t(p.src_stride) * 512, false),
              rows(space, p.dst, out_groups, out_rows * 512, int64_t(p.dst_stride) * 512, true)},
             p.transpose ? p.elem_bits : 0);
  });
}

// Scale blocks of 32 bytes: 16 rows of one pair of E8M0 values (64 K-elements). x walks rows of
// blocks, y pairs along K. The destination is the data tile's address in units of 16 bytes.
void load_scales(ScaleLoad p) {
  const char* op = p.to_b ? "asc_copy_l12l0b_mx" : "asc_copy_l12l0a_mx";
  if (mutate_fields(op, {{Mutant::Count, p.x_step},
                         {Mutant::Bytes, p.y_step},
                         {Mutant::Source, p.src},
                         {Mutant::Target, p.dst},
                         {Mutant::SourceStride, p.src_stride},
                         {Mutant::TargetStride, p.dst_stride}}))
    return;
  if (!core().aic) fail("AK-CORE-001", "%s runs on the cube core", op);
  if (p.x_step == 0 || p.y_step == 0) return;
  Space space = p.to_b ? Space::MXB : Space::MXA;
  check_local(op, Space::L1, p.src,
              (uint64_t(p.x_start + p.x_step - 1) * p.src_stride + p.y_start + p.y_step) * 32, 32);
  check_local(op, space, p.dst, (uint64_t(p.x_step - 1) * p.dst_stride + p.y_step) * 32, 1);
  Bank& bank = *core().block->bank;
  on_pipe(PIPE_MTE1, [=, l1 = bank.l1, mx = bank.of(space, 0)] {
    for (uint64_t x = 0; x < turns(p.x_step); ++x)
      std::memcpy(mx + p.dst + x * p.dst_stride * 32,
                  l1 + p.src + (uint64_t(p.x_start + x) * p.src_stride + p.y_start) * 32,
                  uint64_t(p.y_step) * 32);
    spoil(op, mx + p.dst, 32, 1);
    if (tracing())
      record(op, PIPE_MTE1,
             {rows(Space::L1, p.src + (uint64_t(p.x_start) * p.src_stride + p.y_start) * 32,
                   p.x_step, p.y_step * 32ull, int64_t(p.src_stride) * 32, false),
              rows(space, p.dst, p.x_step, p.y_step * 32ull, int64_t(p.dst_stride) * 32, true)});
  });
}

}  // namespace ak
