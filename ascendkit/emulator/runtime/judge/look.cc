#include "runtime/judge/look.h"

#include <algorithm>
#include <cstdio>

namespace ak::judge {

void Look::run(Form form, const Slot& slot, const Access* a, uint32_t n) {
  Action action = Action(slot.action);
  block_.order_matters |= action == Action::Atomic || action == Action::LoadDev;
  for (uint32_t i = 0; i < n; ++i)
    if (Space(a[i].space) == Space::GM) global(a[i], form);
  if (!data_) return;
  switch (form) {
    case Form::Gm2Ub:
      bursts(a[0], a[1], a[0].row_bytes);
      return copy_in(a[0], a[1]);
    case Form::Ub2Gm:
      bursts(a[1], a[0], a[0].row_bytes);
      block_.order_matters |= head_.argument[0] != 0;
      return store(a[0], a[1]);
    case Form::RowByRow:
      for (uint32_t r = 0; r < std::min(a[0].rows, a[1].rows); ++r)
        bits(a[1]).copy(at(a[1], r), bits(a[0]), at(a[0], r), a[0].row_bytes);
      return;
    case Form::Transpose:
      return transpose(a[0], a[1]);
    case Form::Product:
    case Form::ScaledProduct:
      return product(a, form == Form::ScaledProduct);
    case Form::FixPipe:
      if (Space(a[1].space) == Space::GM)
        store(a[0], a[1]);
      else
        plain(a, n);
      return;
    case Form::Sort:  // leaves its source and work space in no state to rely on
      plain(a, n);
      for (uint32_t i : {1u, 4u}) bits(a[i]).fill(a[i].base, a[i].base + a[i].row_bytes, false);
      return;
    default:
      return plain(a, n);
  }
}

Finding Look::finding(const char* code, const Access& a, uint64_t base, uint64_t bytes) const {
  Finding f{};
  std::snprintf(f.code, sizeof f.code, "%s", code);
  f.site = head_.site, f.block = head_.block, f.aic = head_.aic, f.sub = head_.sub;
  f.pipe = head_.pipe, f.space = a.space, f.write = a.write;
  f.base = base, f.bytes = bytes, f.count = 1;
  return f;
}

void Look::candidate(const Access& a, uint64_t base, uint64_t end) {
  bool gm = Space(a.space) == Space::GM;
  uint32_t region = gm ? uint32_t(block_.tensor->region - spec_.regions) : 0;
  for (Candidate& c : block_.candidates)
    if (c.site == head_.site && c.space == a.space && c.sub == a.sub && c.region == region) {
      c.base = std::min(c.base, base), c.end = std::max(c.end, end), ++c.count;
      return;
    }
  block_.candidates.push_back(
      {head_.site, head_.block, a.space, a.sub, head_.aic, head_.pipe, region, base, end, 1});
}

void Look::plain(const Access* a, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i)
    if (!a[i].write) read(a[i]);
  for (uint32_t i = 0; i < n; ++i) {
    if (!a[i].write || Space(a[i].space) == Space::GM) continue;
    Bits& b = bits(a[i]);
    for (uint32_t r = 0; r < a[i].rows; ++r) {
      uint64_t lo = at(a[i], r);
      b.fill(lo, std::min(lo + a[i].row_bytes, b.size()), true);
    }
  }
}

void Look::read(const Access& a) {
  if (Space(a.space) == Space::GM) {
    if (Tensor* t = block_.tensor)
      for (uint32_t r = 0; t->region->undefined && r < a.rows; ++r) {
        auto [lo, hi] = undefined(*t, at(a, r), a.row_bytes);
        if (lo < hi) candidate(a, lo, hi);
      }
    return;
  }
  Bits& b = bits(a);
  for (uint32_t r = 0; r < a.rows; ++r) {
    uint64_t at_row = at(a, r), end = std::min(at_row + a.row_bytes, b.size());
    if (b.all(at_row, end)) continue;
    auto [lo, hi] = b.missing(at_row, end);
    candidate(a, lo, hi);
  }
}

void Look::copy_in(const Access& from, const Access& to) {
  Bits& b = bits(to);
  for (uint32_t r = 0; r < to.rows; ++r) b.fill(at(to, r), at(to, r) + to.row_bytes, true);
  Tensor* t = block_.tensor;
  if (!t || !t->region->undefined) return;
  uint64_t left = head_.argument[0];  // bytes of padding before the row
  for (uint32_t r = 0; r < from.rows; ++r) {
    auto [lo, hi] = undefined(*t, at(from, r), from.row_bytes);
    if (lo >= hi) continue;
    candidate(from, lo, hi);
    for (uint64_t i = lo; i < hi; ++i)
      if (!t->defined(i - t->region->base)) {
        uint64_t byte = at(to, r) + left + (i - at(from, r));
        b.fill(byte, byte + 1, false);
      }
  }
}

}  // namespace ak::judge
