// Views of tensors, what was written to them, and what was not and went there all the same.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/judge/look.h"

namespace ak::judge {
namespace {
// A byte of global memory whose writers are asked for, and the last of them.
uint64_t watched_byte = 0;
Finding last_writer{};
}  // namespace

void Look::global(const Access& a, Form form) {
  if (a.rows == 0 || a.row_bytes == 0) return;
  uint64_t first = a.base, last = at(a, a.rows - 1);
  uint64_t lo = std::min(first, last), bytes = std::max(first, last) + a.row_bytes - lo;
  Tensor* t = block_.tensor;
  if (!t || lo < t->region->base || lo >= t->region->base + t->region->bytes)
    t = block_.tensor = launch_.tensors.find(lo);
  if (!t) return;  // an address that the kernel read from memory
  if (!t->holds(lo, bytes)) outside(*t, a, form);
  if (a.write) written(*t, a);
}

// Rows that leave the view, one finding an instruction.
void Look::outside(Tensor& t, const Access& a, Form form) {
  for (uint32_t r = 0; r < a.rows; ++r) {
    uint64_t lo = at(a, r);
    if (t.holds(lo, a.row_bytes)) continue;
    const Region& region = *t.region;
    bool inside = lo >= region.base && lo + a.row_bytes <= region.base + region.bytes;
    const char* code = inside              ? (a.write ? "AK-BOUNDS-005" : "AK-BOUNDS-006")
                       : form == Form::Raw ? "AK-BOUNDS-001"
                                           : "AK-BOUNDS-002";
    Finding f = finding(code, a, lo, a.row_bytes);
    describe(f.detail, t, lo, a.row_bytes);
    report(f);
    return;
  }
}

void Look::written(Tensor& t, const Access& a) {
  uint64_t base = t.region->base, end = base + t.region->bytes;
  if (watched_byte - base < t.region->bytes) watch(a);
  bool whole = a.row_bytes % kLine == 0 && a.base % kLine == 0 && a.stride % int(kLine) == 0;
  for (uint32_t r = 0; r < a.rows; ++r) {
    uint64_t lo = at(a, r), hi = std::min(lo + a.row_bytes, end);
    if (lo < base || lo >= hi) continue;
    t.written.fill_shared(lo - base, hi - base);
    if (whole || !advice_) continue;
    if (lo % kLine) edge(lo / kLine);
    if (hi % kLine && (hi / kLine != lo / kLine || lo % kLine == 0)) edge(hi / kLine);
  }
}

void Look::watch(const Access& a) {
  for (uint32_t r = 0; r < a.rows; ++r) {
    if (watched_byte - at(a, r) >= a.row_bytes) continue;
    std::lock_guard<std::mutex> hold(launch_.mutex);
    last_writer = finding("", a, watched_byte, 1);
  }
}

void Look::edge(uint64_t line) {
  auto& edges = block_.edges;
  if (!edges.empty() && edges.back().line == line && edges.back().sub == head_.sub &&
      edges.back().aic == head_.aic)
    return;
  edges.push_back({line, head_.block, head_.site, head_.aic, head_.sub, head_.pipe});
}

// The part of a row of global memory that has no value.
std::pair<uint64_t, uint64_t> Look::undefined(Tensor& t, uint64_t lo, uint64_t bytes) const {
  uint64_t base = t.region->base, first = 0, last = 0;
  if (!t.region->undefined || lo < base || lo + bytes > base + t.region->bytes) return {0, 0};
  for (uint64_t i = lo; i < lo + bytes; ++i)
    if (!t.defined(i - base)) {
      if (!last) first = i;
      last = i + 1;
    }
  return {first, last};
}

// Bytes that nobody wrote go to global memory: what a copy moves is exact.
void Look::store(const Access& from, const Access& to) {
  Bits& b = bits(from);
  bool told = false;
  for (uint32_t r = 0; r < from.rows; ++r) {
    uint64_t lo = at(from, r), end = std::min(lo + from.row_bytes, b.size());
    if (b.all(lo, end)) continue;
    auto [first, last] = b.missing(lo, end);
    bool bytewise = Space(from.space) == Space::UB;  // others convert and reorder
    uint64_t where = bytewise ? at(to, r) + (first - lo) : to.base;
    unset(to, bytewise ? where : 0, last - first);
    if (told) continue;
    told = true;
    Finding f = finding("AK-UNINIT-001", from, first, last - first);
    if (Tensor* t = block_.tensor) {
      describe(f.detail, *t, where, last - first);
      if (char* end_of_range = std::strchr(f.detail, ')')) end_of_range[1] = 0;
    }
    report(f);
  }
}

// Notes that bytes of a tensor, all that `to` writes if `lo` is 0, hold nothing of use.
void Look::unset(const Access& to, uint64_t lo, uint64_t bytes) {
  Tensor* t = block_.tensor;
  if (!t) return;
  std::lock_guard<std::mutex> hold(launch_.mutex);
  uint64_t base = t->region->base, size = t->region->bytes;
  if (!t->unset.size()) t->unset = Bits(size);
  auto mark = [&](uint64_t from, uint64_t n) {
    if (from >= base && from + n <= base + size) t->unset.fill(from - base, from - base + n, true);
  };
  if (lo) return mark(lo, bytes);
  for (uint32_t r = 0; r < to.rows; ++r) mark(at(to, r), to.row_bytes);
}

}  // namespace ak::judge

extern "C" {
void ak_watch(uint64_t address) {
  ak::judge::watched_byte = address;
  ak::judge::last_writer = {};
}
uint32_t ak_watched(ak::Finding* out) {
  *out = ak::judge::last_writer;
  ak::judge::watched_byte = 0;
  return out->count != 0;
}
}
