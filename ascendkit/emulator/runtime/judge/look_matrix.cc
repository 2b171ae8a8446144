// Operands of the matrix unit: what lies in the parts of its blocks that are multiplied in.
#include <cstdio>

#include "runtime/judge/look.h"

namespace ak::judge {

// Element (row, column) becomes (column, row); see l0.cc for the geometry.
void Look::transpose(const Access& from, const Access& to) {
  Bits &source = bits(from), &target = bits(to);
  bool all = true;
  for (uint32_t r = 0; r < from.rows; ++r)
    all &= source.all(at(from, r), at(from, r) + from.row_bytes);
  for (uint32_t r = 0; r < to.rows; ++r) target.fill(at(to, r), at(to, r) + to.row_bytes, true);
  if (all || head_.argument[0] == 0) return;
  uint64_t element = head_.argument[0], c0 = 256 / element;  // bits, elements
  uint64_t row_count = from.row_bytes / 32, columns = from.rows * c0;
  for (uint64_t r = 0; r < row_count; ++r)
    for (uint64_t c = 0; c < columns; ++c) {
      uint64_t byte = at(from, c / c0) + r * 32 + (c % c0) * element / 8;
      if (source.test(byte)) continue;
      uint64_t place = at(to, r / c0) + (c / 16) * 512 + (c % 16) * 32 + (r % c0) * element / 8;
      target.fill(place, place + std::max<uint64_t>(1, element / 8), false);
    }
}

// Rows below `rows` of whole groups of C0 columns are multiplied in; rows past it only make rows
// of the result that nobody asked for.
void Look::operand(const Access& a, uint64_t rows, const char* name) {
  Bits& b = bits(a);
  uint64_t blocks = (rows + 15) / 16, groups = a.row_bytes / (blocks * 512);
  for (uint64_t g = 0; g < groups; ++g) {
    uint64_t lo = a.base + g * blocks * 512, end = lo + rows * 32;
    if (!b.all(lo, end)) return undefined_operand(a, b.missing(lo, end), name);
  }
}

void Look::scales(Space space, uint64_t base, uint64_t rows, uint64_t pairs, const char* name) {
  Access a{uint8_t(space), 0, 0, 0, 1, base, 0, 0};
  Bits& b = bits(a);
  for (uint64_t block = 0; block * 16 < rows; ++block)
    for (uint64_t p = 0; p < pairs; ++p) {
      uint64_t lo = base + (block * pairs + p) * 32;
      uint64_t end = lo + 2 * std::min<uint64_t>(16, rows - block * 16);
      if (!b.all(lo, end)) return undefined_operand(a, b.missing(lo, end), name);
    }
}

void Look::undefined_operand(const Access& a, std::pair<uint64_t, uint64_t> range,
                             const char* name) {
  Finding f = finding("AK-UNINIT-002", a, range.first, range.second - range.first);
  f.write = 0;
  std::snprintf(f.detail, sizeof f.detail, "%s: %llu rows, %llu columns, K = %llu", name,
                (unsigned long long)m(), (unsigned long long)n(), (unsigned long long)k());
  report(f);
}

// K ends inside a block of 32 bytes, and both operands hold something in one column behind it.
void Look::tail(const Access& a, const Access& b) {
  uint64_t bits = head_.argument[1] >> 16 & 255;  // of an element
  uint64_t used = bits ? k() * bits / 8 % 32 : 0;
  if (!used) return;
  struct {
    uint8_t byte[32] = {};
  } all[2];
  auto gather = [&](const Access& x, uint64_t rows, uint8_t (&into)[32]) {
    uint64_t blocks = (rows + 15) / 16, last = x.row_bytes / (blocks * 512) - 1;
    const uint8_t* p = bank_.of(Space(x.space), 0) + x.base + last * blocks * 512;
    for (uint64_t r = 0; r < rows; ++r)
      for (uint64_t i = used; i < 32; ++i) into[i] |= p[r * 32 + i];
    return x.base + last * blocks * 512 + used;
  };
  uint64_t at = gather(a, m(), all[0].byte);
  gather(b, n(), all[1].byte);
  for (uint64_t i = used; i < 32; ++i) {
    if (!all[0].byte[i] || !all[1].byte[i]) continue;
    Finding f = finding("AK-CUBE-004", a, at, 32 - used);
    f.write = 0;
    std::snprintf(f.detail, sizeof f.detail,
                  "K = %llu elements of %llu bits end inside a block of 32 B: its last %llu B are "
                  "not zero in A and B, and are multiplied in",
                  (unsigned long long)k(), (unsigned long long)bits,
                  (unsigned long long)(32 - used));
    return report(f);
  }
}
void Look::product(const Access* a, bool scaled) {
  operand(a[0], m(), "operand A");
  operand(a[1], n(), "operand B");
  tail(a[0], a[1]);
  if (scaled) {
    scales(Space::MXA, a[0].base / 16, m(), (k() + 63) / 64, "scales of A");
    scales(Space::MXB, a[1].base / 16, n(), (k() + 63) / 64, "scales of B");
  }
  const Access& c = a[2];
  Bits& b = bits(c);
  uint64_t column_group = (m() + 15) / 16 * 1024;  // 16 columns of float32 or int32
  bool clear = head_.argument[1] >> 8 & 1;
  bool told = false;
  for (uint64_t g = 0; g * 16 < n(); ++g) {
    uint64_t lo = c.base + g * column_group, end = lo + m() * 64;
    if (!clear && !told && !b.all(lo, end))
      undefined_operand(c, b.missing(lo, end), "accumulator"), told = true;
    b.fill(lo, end, true);
  }
}

}  // namespace ak::judge
