// The matrix unit: C (+)= A x B^T on L0 tiles. Products are summed in double and rounded once per
// instruction; integers are exact. Scaled (MX) operands take one E8M0 scale per 32 K-elements.
#include <algorithm>

#include "mutate.h"
#include "record.h"

namespace ak {
namespace {

float load_elem(const uint8_t* tile, uint64_t index, Dtype type) {
  switch (type) {
    case Dtype::F32:
      return reinterpret_cast<const float*>(tile)[index];
    case Dtype::F16:
      return float(reinterpret_cast<const half*>(tile)[index]);
    case Dtype::BF16:
      return float(reinterpret_cast<const bfloat16_t*>(tile)[index]);
    case Dtype::S8:
      return reinterpret_cast<const int8_t*>(tile)[index];
    case Dtype::U8:
      return tile[index];
    case Dtype::E4M3:
      return decode<E4M3>(tile[index]);
    case Dtype::E5M2:
      return decode<E5M2>(tile[index]);
    case Dtype::E2M1:
      return decode<E2M1>((tile[index / 2] >> (4 * (index & 1))) & 0xf);
    case Dtype::E1M2:
      return decode<E1M2>((tile[index / 2] >> (4 * (index & 1))) & 0xf);
    default:
      return 0;
  }
}
uint32_t elem_bits(Dtype type) {
  switch (type) {
    case Dtype::F32:
      return 32;
    case Dtype::F16:
    case Dtype::BF16:
      return 16;
    case Dtype::E2M1:
    case Dtype::E1M2:
      return 4;
    default:
      return 8;
  }
}
// HF32 keeps 11 mantissa bits of a float32.
constexpr int kHf32Drop = 12;
float to_hf32(float x, asc_hf32_round_mode mode) {
  uint32_t u = float_to_bits(x);
  if ((u & 0x7f800000) == 0x7f800000) return x;
  uint32_t tie = 1u << (kHf32Drop - 1);
  uint32_t bias =
      mode == asc_hf32_round_mode::NEAREST_AWAY ? tie : tie - 1 + ((u >> kHf32Drop) & 1);
  return bits_to_float((u + bias) & ~((1u << kHf32Drop) - 1));
}

// Unpacks rows x k of an L0 tile (fractals [k / C0][rows / 16][16][C0]) into `out`, k-major:
// out[k][row].
struct Tile {
  const uint8_t *data, *scales;
  Dtype type;
  uint32_t rows, k;
};
void unpack(const Tile& t, uint32_t pitch, std::vector<double>& out, bool hf32,
            asc_hf32_round_mode round) {
  uint32_t c0 = 256 / elem_bits(t.type), blocks = (t.rows + 15) / 16, pairs = (t.k + 63) / 64;
  out.assign(size_t(t.k) * pitch, 0.0);
  for (uint32_t k = 0; k < t.k; ++k)
    for (uint32_t r = 0; r < t.rows; ++r) {
      uint64_t index = (uint64_t(k / c0) * blocks + r / 16) * 16 * c0 + (r % 16) * c0 + k % c0;
      float v = load_elem(t.data, index, t.type);
      if (hf32) v = to_hf32(v, round);
      double d = v;
      if (t.scales) {
        uint64_t at = (uint64_t(r / 16) * pairs + k / 64) * 32 + (r % 16) * 2 + (k % 64) / 32;
        d *= decode_e8m0(t.scales[at]);
      }
      out[size_t(k) * pitch + r] = d;
    }
}

// c[m][n] += sum over k, with N padded to whole vectors so that the inner loop has no tail.
void accumulate(const std::vector<double>& a, const std::vector<double>& b, uint32_t m, uint32_t k,
                uint32_t a_pitch, uint32_t n_pitch, double* c) {
  constexpr uint32_t kRows = 4, kCols = 32;
  for (uint32_t n0 = 0; n0 < n_pitch; n0 += kCols)
    for (uint32_t m0 = 0; m0 < m; m0 += kRows) {
      double sum[kRows][kCols];
      for (uint32_t i = 0; i < kRows; ++i)
        for (uint32_t j = 0; j < kCols; ++j) sum[i][j] = c[size_t(m0 + i) * n_pitch + n0 + j];
      for (uint32_t x = 0; x < k; ++x) {
        const double* row = &b[size_t(x) * n_pitch + n0];
        const double* col = &a[size_t(x) * a_pitch + m0];
        for (uint32_t i = 0; i < kRows; ++i)
          for (uint32_t j = 0; j < kCols; ++j) sum[i][j] += col[i] * row[j];
      }
      for (uint32_t i = 0; i < kRows; ++i)
        for (uint32_t j = 0; j < kCols; ++j) c[size_t(m0 + i) * n_pitch + n0 + j] = sum[i][j];
    }
}

void run_mmad(const Mmad& p, bool hf32, asc_hf32_round_mode round, const Bank& bank) {
  uint32_t blocks = (p.m + 15) / 16;
  uint32_t a_pitch = (p.m + 3) / 4 * 4, n_pitch = (p.n + 31) / 32 * 32;
  static thread_local std::vector<double> a, b, c;
  Tile ta{bank.l0a + p.a, p.scaled ? bank.mxa + p.a / 16 : nullptr, p.a_type, p.m, p.k};
  Tile tb{bank.l0b + p.b, p.scaled ? bank.mxb + p.b / 16 : nullptr, p.b_type, p.n, p.k};
  unpack(ta, a_pitch, a, hf32, round);
  unpack(tb, n_pitch, b, hf32, round);
  c.assign(size_t(a_pitch) * n_pitch, 0.0);
  bool integer = p.c_type == Dtype::S32;
  uint8_t* out = bank.l0c + p.c;
  auto at = [&](uint32_t m, uint32_t n) {
    return (uint64_t(n / 16) * blocks + m / 16) * 256 + (m % 16) * 16 + n % 16;
  };
  if (!p.clear)
    for (uint32_t m = 0; m < p.m; ++m)
      for (uint32_t n = 0; n < p.n; ++n)
        c[size_t(m) * n_pitch + n] = integer ? double(reinterpret_cast<int32_t*>(out)[at(m, n)])
                                             : double(reinterpret_cast<float*>(out)[at(m, n)]);
  accumulate(a, b, p.m, p.k, a_pitch, n_pitch, c.data());
  for (uint32_t m = 0; m < p.m; ++m)
    for (uint32_t n = 0; n < p.n; ++n) {
      double v = c[size_t(m) * n_pitch + n];
      if (integer)
        reinterpret_cast<int32_t*>(out)[at(m, n)] = int32_t(int64_t(v));
      else
        reinterpret_cast<float*>(out)[at(m, n)] = float(v);
    }
}

bool legal(const Mmad& p) {
  auto fp8 = [](Dtype t) { return t == Dtype::E4M3 || t == Dtype::E5M2; };
  auto fp4 = [](Dtype t) { return t == Dtype::E2M1 || t == Dtype::E1M2; };
  if (p.scaled)
    return p.c_type == Dtype::F32 &&
           ((fp8(p.a_type) && fp8(p.b_type)) || (fp4(p.a_type) && fp4(p.b_type)));
  if (p.c_type == Dtype::S32) return p.a_type == Dtype::S8 && p.b_type == Dtype::S8;
  if (p.c_type != Dtype::F32) return false;
  return (p.a_type == p.b_type &&
          (p.a_type == Dtype::F32 || p.a_type == Dtype::F16 || p.a_type == Dtype::BF16)) ||
         (fp8(p.a_type) && fp8(p.b_type));
}
}  // namespace

void mmad(Mmad p) {
  const char* op = p.scaled ? "asc_mmad_mx" : "asc_mmad";
  if (mutate_fields(op, {{Mutant::Count, p.m},
                         {Mutant::Bytes, p.k},
                         {Mutant::Target, p.c},
                         {Mutant::SourceStride, p.n}}))
    return;
  if (!core().aic) fail("AK-CORE-001", "%s runs on the cube core", op);
  if (!legal(p)) fail("AK-TYPE-002", "%s has no such combination of element types", op);
  if (p.bias) fail("AK-UNSUPPORTED-002", "%s with a bias table is not emulated", op);
  if (p.m == 0 || p.n == 0 || p.k == 0) return;
  uint64_t ac0 = 256 / elem_bits(p.a_type), bc0 = 256 / elem_bits(p.b_type);
  uint64_t m1 = (p.m + 15) / 16, n1 = (p.n + 15) / 16;
  check_local(op, Space::L0A, p.a, (p.k + ac0 - 1) / ac0 * m1 * 512, 512);
  check_local(op, Space::L0B, p.b, (p.k + bc0 - 1) / bc0 * n1 * 512, 512);
  check_local(op, Space::L0C, p.c, n1 * m1 * 1024, 64);
  Modes& m = core().modes;
  bool hf32 = m.hf32 && p.a_type == Dtype::F32;
  on_pipe(PIPE_M, [=, round = m.hf32_round, bank = core().block->bank] {
    if (!control()) run_mmad(p, hf32, round, *bank);
    spoil(op, bank->l0c + p.c, 64, 4);
    if (!tracing()) return;
    Access a = rows(Space::L0A, p.a, 1, (p.k + ac0 - 1) / ac0 * m1 * 512, 0, false);
    Access b = rows(Space::L0B, p.b, 1, (p.k + bc0 - 1) / bc0 * n1 * 512, 0, false);
    Access c = rows(Space::L0C, p.c, 1, n1 * m1 * 1024, 0, true);
    uint64_t shape = uint64_t(p.m) << 40 | uint64_t(p.n) << 20 | p.k;
    uint64_t flags = p.unit_flag | p.clear << 8 | elem_bits(p.a_type) << 16,
             pairs = (p.k + 63) / 64;
    if (p.scaled)
      record(op, PIPE_M,
             {a, b, c, rows(Space::MXA, p.a / 16, 1, m1 * pairs * 32, 0, false),
              rows(Space::MXB, p.b / 16, 1, n1 * pairs * 32, 0, false)},
             shape, flags);
    else
      record(op, PIPE_M, {a, b, c}, shape, flags);
  });
}

}  // namespace ak
