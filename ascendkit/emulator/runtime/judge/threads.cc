// Races between the SIMT threads of one vector function: words of memory with their last writer and
// reader. Barriers order all threads, warp collectives those of a warp.
#include <cstdio>
#include <unordered_map>

#include "runtime/judge/race.h"

namespace ak::judge {
namespace {
constexpr uint32_t kWarp = 32;

struct Last {
  uint32_t thread = ~0u, phase = 0, site = 0;
  bool atomic = false;
};
struct Word {
  uint32_t call = 0;
  bool bytes = false;  // accessed in parts: each byte has an entry of its own
  bool many = false;   // several threads have read it since it was written
  Last write, read;
};
struct Threads {
  uint32_t call = 0;
  std::vector<Word> ub = std::vector<Word>(kUbBytes / 4);
  std::unordered_map<uint64_t, Word> rest;  // of other spaces by word, and single bytes
};
thread_local std::unique_ptr<Threads> threads;

bool ordered(const Last& l, uint32_t thread, uint32_t phase) {
  if (l.thread == ~0u || l.thread == thread) return true;
  if ((l.phase >> 16) < (phase >> 16)) return true;
  return l.thread / kWarp == thread / kWarp && (l.phase & 0xffff) < (phase & 0xffff);
}

struct Now {
  Core& core;
  Space space;
  uint64_t at;
  uint32_t size;
  bool write, atomic;
  uint32_t thread, phase, site;

  void conflict(const Last& l, bool other_write) const {
    Finding f{};
    std::snprintf(f.code, sizeof f.code, "AK-RACE-009");
    f.site = site, f.other_site = l.site;
    f.block = f.other_block = core.block->index;
    f.sub = f.other_sub = uint8_t(core.sub);
    f.pipe = f.other_pipe = PIPE_V, f.space = uint8_t(space);
    f.write = write, f.other_write = other_write;
    f.base = at, f.bytes = size, f.count = 1;
    std::snprintf(f.detail, sizeof f.detail, "threads %u and %u, no barrier between: %s", thread,
                  l.thread,
                  !write        ? "one reads what the other wrote"
                  : other_write ? "both write"
                                : "one overwrites what the other reads");
    report(f);
  }
  void touch(Word& w) const {
    if (!ordered(w.write, thread, phase) && !(atomic && w.write.atomic)) conflict(w.write, true);
    if (!write) {
      // Of several readers since the last barrier one is remembered, and that there are others.
      if (!ordered(w.read, thread, phase))
        w.many = true;
      else if (w.read.thread != thread)
        w.many = false;
      w.read = {thread, phase, site, atomic};
      return;
    }
    if ((!ordered(w.read, thread, phase) ||
         (w.many && w.read.thread == thread && (w.read.phase >> 16) == (phase >> 16))) &&
        !(atomic && w.read.atomic))
      conflict(w.read, false);
    w.write = {thread, phase, site, atomic};
    w.read = {}, w.many = false;
  }
};
}  // namespace

void threads_begin() {
  if (!threads) threads = std::make_unique<Threads>();
  ++threads->call;
  threads->rest.clear();
}

void thread_access(Core& core, Space space, uint64_t at, uint32_t size, bool write, bool atomic,
                   uint32_t thread, uint32_t phase, uint32_t site) {
  Threads& t = *threads;
  auto fresh = [&](Word& w) -> Word& {
    if (w.call != t.call) w = Word{t.call};
    return w;
  };
  auto single = [&](uint64_t byte) -> Word& {
    return fresh(t.rest[uint64_t(space) << 60 | byte | 1ull << 59]);
  };
  for (uint64_t word = at / 4; word * 4 < at + size; ++word) {
    Word& w = fresh(space == Space::UB ? t.ub[word] : t.rest[uint64_t(space) << 60 | word]);
    uint64_t low = std::max(at, word * 4), high = std::min(at + size, word * 4 + 4);
    Now now{core, space, low, uint32_t(high - low), write, atomic, thread, phase, site};
    if (high - low == 4 && !w.bytes) {
      now.touch(w);
      continue;
    }
    if (!w.bytes) {
      Word whole = w;
      for (uint64_t b = word * 4; b < word * 4 + 4; ++b) single(b) = whole;
      w.bytes = true;
    }
    for (uint64_t b = low; b < high; ++b) {
      now.at = b, now.size = 1;
      now.touch(single(b));
    }
  }
}

}  // namespace ak::judge
