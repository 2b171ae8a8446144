#include "record.h"

#include <cstring>
#include <unordered_map>

namespace ak {
namespace {
std::mutex slot_mutex;
Slot* slots = nullptr;
std::mutex stream_mutex;
std::vector<char> stream;  // of the last traced launch, blocks in order of completion
// Records of a running block are gathered per worker and appended when the block ends.
thread_local std::unordered_map<uint32_t, std::vector<char>> open_records;

thread_local std::vector<Access> loads;  // of the vector instruction being executed
thread_local size_t last_vector = 0;     // where its record starts

bool recording() { return worker->launch->spec.trace >= 2; }
void append(std::vector<char>& to, const void* p, size_t n) {
  to.insert(to.end(), static_cast<const char*>(p), static_cast<const char*>(p) + n);
}
}  // namespace

Slot* slot(const char* name) {
  std::lock_guard<std::mutex> hold(slot_mutex);
  for (Slot* s = slots; s; s = s->next)
    if (std::strcmp(s->name, name) == 0) return s;
  slots = new Slot{strdup(name), 0, 0, slots ? slots->index + 1 : 0, slots};
  return slots;
}

void corrupt(uint32_t kind, void* result, uint32_t bytes, uint32_t lane_bytes) {
  auto* p = static_cast<uint8_t*>(result);
  switch (kind) {
    case 1:
      p[0] ^= 1;
      break;  // rounding: last bit of lane 0
    case 2:
      p[lane_bytes - 1] ^= 0x80;
      break;  // sign of lane 0
    case 3:   // mask: lane 1 dropped
      if (bytes > lane_bytes) std::memset(p + lane_bytes, 0, lane_bytes);
      break;
    default:  // stride: shifted by one lane
      if (bytes > lane_bytes) std::memmove(p + lane_bytes, p, bytes - lane_bytes);
  }
}

uint32_t fault_of(const char* op) { return slot(op)->fault; }

void write_record(const Slot* s, int pipe, const Access* accesses, size_t n, uint64_t a0,
                  uint64_t a1) {
  Core& c = core();
  RecordHead head{s->index, site,           c.block->index, uint8_t(pipe),
                  c.aic,    uint8_t(c.sub), uint8_t(n),     {a0, a1}};
  auto& out = open_records[c.block->index];
  append(out, &head, sizeof head);
  append(out, accesses, n * sizeof(Access));
}

void record(const char* op, int pipe, std::initializer_list<Access> accesses, uint64_t a0,
            uint64_t a1) {
  Slot* s = slot(op);
  __atomic_fetch_add(&s->count, 1, __ATOMIC_RELAXED);
  if (recording()) write_record(s, pipe, accesses.begin(), accesses.size(), a0, a1);
}

void stream_record(const char* op, int pipe, uint64_t a0, uint64_t a1) {
  if (recording()) write_record(slot(op), pipe, nullptr, 0, a0, a1);
}

// A vector instruction: its loads come before it, its stores after; both become one record.
void trace_op(const Slot* s) {
  if (!recording()) return;
  write_record(s, PIPE_V, loads.data(), loads.size(), 0, 0);
  last_vector =
      open_records[core().block->index].size() - loads.size() * sizeof(Access) - sizeof(RecordHead);
  loads.clear();
}

void trace_access(const void* p, uint32_t bytes, bool write) {
  if (!recording()) return;
  uint64_t offset = uint64_t(static_cast<const uint8_t*>(p) - ub());
  Access a = rows(Space::UB, offset, 1, bytes, bytes, write, core().sub);
  if (!write) {
    if (!loads.empty() && loads.back().base + loads.back().row_bytes == offset)
      loads.back().row_bytes += bytes;
    else
      loads.push_back(a);
    return;
  }
  auto& out = open_records[core().block->index];
  auto* head = reinterpret_cast<RecordHead*>(&out[last_vector]);
  auto* last = reinterpret_cast<Access*>(&out[out.size() - sizeof(Access)]);
  if (head->accesses && last->write && last->base + last->row_bytes == offset) {
    last->row_bytes += bytes;
    return;
  }
  ++head->accesses;
  append(out, &a, sizeof a);
}

bool trace_sync(const char* op, int pipe, int other, uint32_t id) {
  (void)pipe, (void)other, (void)id;
  if (!tracing()) return false;
  __atomic_fetch_add(&slot(op)->count, 1, __ATOMIC_RELAXED);
  return fault_of(op) != 0;
}

void finish_block(Block& block) {
  auto it = open_records.find(block.index);
  if (it == open_records.end()) return;
  std::lock_guard<std::mutex> hold(stream_mutex);
  append(stream, it->second.data(), it->second.size());
  open_records.erase(it);
}

Access range(Space space, const void* p, uint64_t bytes, bool write) {
  return rows(space, uint64_t(p), 1, bytes, int64_t(bytes), write, core().sub);
}
Access rows(Space space, uint64_t base, uint64_t count, uint64_t bytes, int64_t stride, bool write,
            uint32_t sub) {
  return {uint8_t(space), write, uint8_t(sub), 0, uint32_t(count), base, bytes, stride};
}

}  // namespace ak

extern "C" {
AK_API const ak::Slot* ak_slots() { return ak::slots; }
AK_API void ak_set_fault(const char* name, uint32_t kind) { ak::slot(name)->fault = kind; }
AK_API void ak_clear_slots() {
  for (ak::Slot* s = ak::slots; s; s = s->next) s->count = 0, s->fault = 0;
}
AK_API uint64_t ak_stream(const char** data) {
  *data = ak::stream.data();
  return ak::stream.size();
}
AK_API void ak_clear_stream() { ak::stream.clear(); }
}
