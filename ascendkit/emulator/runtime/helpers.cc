// State and memory behind the calls of hand-written helpers.
#include <algorithm>
#include <numeric>

#include "record.h"

namespace ak {
namespace {
constexpr uint32_t kBlock = 32, kRegister = 256;
constexpr const char* kWantsInit =
    "needs asc_squeeze_and_storeunalign_init first, and no asc_squeeze since: what that leaves in "
    "the count is not public";

void store(const char* op, uint8_t* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return;
  check_ub(op, to, bytes, 1);
  std::memcpy(to, from, bytes);
  if (tracing()) trace_access(to, uint32_t(bytes), true);
}
}  // namespace

void set_squeezed(uint32_t bytes) { core().modes.squeezed = bytes; }
void forget_squeezed() { core().modes.squeezed = -1; }
uint32_t squeezed(const char* op) {
  int64_t bytes = core().modes.squeezed;
  if (bytes < 0) fail("AK-SQUEEZE-001", "%s %s", op, kWantsInit);
  return uint32_t(bytes);
}
uint64_t squeeze_status() {
  const char* op = "asc_get_squeeze_status";
  if (core().in_simd) fail("AK-CORE-002", "%s is for scalar code, not for a vector function", op);
  if (control()) needs_data(op);
  if (!core().queue[PIPE_V].empty())
    fail("AK-SQUEEZE-002", "%s before the vector function has run: wait for its pipe", op);
  if (tracing()) record(op, PIPE_S, {});
  uint64_t bytes = squeezed(op);
  spoil(op, &bytes, 8, 8);
  return bytes;
}

// Whole 32-byte blocks are written, the rest is held until more comes or the store is finished.
void append_squeezed(const char* op, void* base, const void* data, uint32_t bytes, uint8_t* held,
                     uint32_t* held_bytes) {
  uint32_t kept = squeezed(op), before = std::min<uint32_t>(*held_bytes, kBlock);
  uint8_t line[kBlock + kRegister];
  std::memcpy(line, held, before);
  std::memcpy(line + before, data, bytes);
  uint8_t* first = static_cast<uint8_t*>(base) + kept - before;
  uint64_t end = uint64_t(first) + before + bytes, whole = end & ~uint64_t(kBlock - 1);
  uint64_t written = whole > uint64_t(first) ? whole - uint64_t(first) : 0;
  store(op, first, line, written);
  *held_bytes = uint32_t(before + bytes - written);
  std::memcpy(held, line + written, *held_bytes);
  set_squeezed(kept + bytes);
}
void finish_squeezed(const char* op, void* base, const uint8_t* held, uint32_t* held_bytes) {
  uint32_t rest = std::min<uint32_t>(*held_bytes, kBlock);
  store(op, static_cast<uint8_t*>(base) + squeezed(op) - rest, held, rest);
  *held_bytes = 0;
}

void set_loop_size(const char* op, uint64_t first, uint64_t second) {
  if (tracing()) record(op, PIPE_S, {}, first, second);
  if (first != 1 || second != 1)
    fail("AK-UNSUPPORTED-006", "%s(%llu, %llu): copies in loops are not emulated, wanted (1, 1)",
         op, (unsigned long long)first, (unsigned long long)second);
}

uint64_t shared_scalars() {
  const char* op = "GetSsbufBaseAddr";
  Core& c = core();
  if (Kind(worker->launch->spec.kind) != Kind::Mixed)
    fail("AK-CORE-003", "%s: cube and vector cores share that buffer, so it needs a __mix__ kernel",
         op);
  if (tracing()) record(op, PIPE_S, {});
  // A fault takes each core to another place.
  uint64_t away = dropped(op) ? 8 * (1 + c.sub + 2 * c.aic) : 0;
  return uint64_t(c.block->bank->ss) + away;
}

// The work space that the known call site gives: nothing says that less is enough.
void sort(Sort p) {
  const char* op = "AscendC::Sort";
  if (core().aic) fail("AK-CORE-001", "%s runs on a vector core, not on the cube core", op);
  uint64_t scratch = 512 + 11 * uint64_t(p.count), bytes = 4 * uint64_t(p.count);
  if (p.scratch_bytes < scratch)
    fail("AK-BOUNDS-002", "%s of %u elements: work space of %u bytes, wanted %llu", op, p.count,
         p.scratch_bytes, (unsigned long long)scratch);
  for (const void* at : {(const void*)p.sorted, (const void*)p.places, (const void*)p.source})
    check_ub(op, at, bytes, 32);
  check_ub(op, p.scratch, scratch, 32);
  on_pipe(PIPE_V, [=, base = ub()] {
    uint32_t n = uint32_t(turns(p.count));
    std::vector<int32_t> values(p.source, p.source + n);
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return values[a] < values[b]; });
    if (n) {
      // What may be overwritten is, so that nobody relies on it.
      std::memset(p.source, kPoison, bytes);
      std::memset(p.scratch, kPoison, scratch);
    }
    for (uint32_t i = 0; i < n; ++i) p.sorted[i] = values[order[i]], p.places[i] = order[i];
    if (n) spoil("Sort", p.sorted, bytes, 4);
    if (!tracing()) return;
    auto at = [&](const void* q, uint64_t size, bool write) {
      uint64_t offset = uint64_t(static_cast<const uint8_t*>(q) - base);
      return rows(Space::UB, offset, 1, size, int64_t(size), write, core().sub);
    };
    record("Sort", PIPE_V,
           {at(p.source, bytes, false), at(p.source, bytes, true), at(p.sorted, bytes, true),
            at(p.places, bytes, true), at(p.scratch, scratch, true)},
           p.count);
  });
}

}  // namespace ak
