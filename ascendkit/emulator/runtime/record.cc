#include <cstring>
#include <unordered_map>

#include "runtime/judge/judge.h"
#include "runtime/raw.h"

namespace ak {
namespace {
std::mutex slot_mutex;
Slot* slots = nullptr;
std::mutex stream_mutex;
std::vector<char> stream;  // of the last traced launch, blocks in order of completion
void append(std::vector<char>& to, const void* p, size_t n) {
  to.insert(to.end(), static_cast<const char*>(p), static_cast<const char*>(p) + n);
}

Action action_of(const char* name) {
  struct Named {
    const char* name;
    Action action;
  };
  constexpr Named named[] = {
      {"asc_sync_notify", Action::Notify},
      {"asc_sync_wait", Action::Wait},
      {"asc_sync", Action::SyncAll},
      {"asc_sync_pipe", Action::SyncPipe},
      {"asc_lock", Action::Lock},
      {"asc_unlock", Action::Unlock},
      {"asc_sync_inter_arrive", Action::Arrive},
      {"asc_sync_subblock_arrive", Action::Arrive},
      {"asc_sync_block_arrive", Action::Arrive},
      {"asc_sync_intra_arrive", Action::Arrive},
      {"asc_sync_inter_wait", Action::CrossWait},
      {"asc_sync_subblock_wait", Action::CrossWait},
      {"asc_sync_block_wait", Action::CrossWait},
      {"asc_sync_intra_wait", Action::CrossWait},
      {"simd_vf", Action::SimdBegin},
      {"simd_vf.end", Action::SimdEnd},
      {"asc_vf_call", Action::SimtBegin},
      {"asc_vf_call.end", Action::SimtEnd},
      {"asc_mem_bar", Action::MemBar},
      {"asc_syncthreads", Action::SimtBarrier},
      {"asc_shfl_xor", Action::Warp},
      {"asc_reduce_add.simt", Action::Warp},
      {"asc_reduce_max.simt", Action::Warp},
      {"asc_reduce_min.simt", Action::Warp},
      {"asc_ballot", Action::Warp},
      {"asc_activemask", Action::Warp},
      {"coalesced_threads.sync", Action::Warp},
      {"asc_mmad", Action::Mmad},
      {"asc_mmad_mx", Action::Mmad},
      {"asc_copy_l0c2gm", Action::FixPipe},
      {"asc_copy_l0c2ub", Action::FixPipe},
      {"asc_load_dev", Action::LoadDev},
      {"asc_store_dev", Action::StoreDev},
      {"raw", Action::Raw},
      {"asc_atomic_add", Action::Atomic},
      {"asc_atomic_max", Action::Atomic},
      {"asc_atomic_min", Action::Atomic},
  };
  for (const Named& n : named)
    if (std::strcmp(n.name, name) == 0) return n.action;
  return Action::Plain;
}

RecordHead head_of(const Core& c, const Slot& s, int pipe, uint32_t at, size_t accesses,
                   uint64_t a0, uint64_t a1) {
  return {s.index,
          at,
          c.block->index,
          uint8_t(pipe),
          c.aic,
          uint8_t(c.sub),
          uint8_t(accesses),
          {a0, a1},
          c.running,
          0};
}
void emit(Recorder& r, Core& c, const Slot& s, const RecordHead& head, const Access* accesses) {
  if (r.streams) {
    auto& out = r.open[head.block];
    append(out, &head, sizeof head);
    append(out, accesses, head.accesses * sizeof(Access));
  }
  if (r.checks || r.journals) judge::on_record(c, s, head, accesses);
}
// Nothing joins the open vector instruction any more.
void close_vector(Recorder& r, Core& c) {
  if (!r.slot) return;
  const Slot& s = *r.slot;
  r.slot = nullptr;
  size_t n = r.accesses.size(), at = 0;
  // Judges have no interest in what computes with registers alone.
  if (n == 0 && !r.streams && Action(s.action) == Action::Plain) return;
  constexpr size_t kMost = 255;  // of one record; a scatter of bytes may have more
  do {
    size_t part = std::min(kMost, n - at);
    emit(r, c, s, head_of(c, s, PIPE_V, r.site, part, 0, 0), r.accesses.data() + at);
    at += part;
  } while (at < n);
}

// That of an instruction whose name is a literal: by its address, the list is long.
Slot& slot_of(const char* op) {
  SlotCache::Entry& known = worker->slots.of[(uint64_t(op) >> 3) % SlotCache::kEntries];
  if (known.op != op) known = {op, slot(op)};
  return *known.slot;
}
}  // namespace

Recorder::Recorder(const Spec& spec)
    : streams(spec.trace >= 2), checks(spec.flags & kCheck), journals(spec.flags & kJournal) {}

void record_begin(Core& core) {
  if (!worker->recorder) return;
  worker->recorder->ub = ak::ub();
  raw_begin(core);
}

Slot* slot(const char* name) {
  std::lock_guard<std::mutex> hold(slot_mutex);
  for (Slot* s = slots; s; s = s->next)
    if (std::strcmp(s->name, name) == 0) return s;
  slots =
      new Slot{strdup(name), 0, 0, slots ? slots->index + 1 : 0, slots, uint8_t(action_of(name))};
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

uint32_t fault_of(const char* op) { return slot_of(op).fault; }

void write_raw(const Slot& s, const RecordHead& head, const Access& access) {
  Worker& w = *worker;
  emit(*w.recorder, *w.current, s, head, &access);
}

void write_record(const Slot* s, int pipe, const Access* accesses, size_t n, uint64_t a0,
                  uint64_t a1) {
  Worker& w = *worker;
  raw_flush();
  close_vector(*w.recorder, *w.current);
  RecordHead head = head_of(*w.current, *s, pipe, site, n, a0, a1);
  emit(*w.recorder, *w.current, *s, head, accesses);
}

void record(const char* op, int pipe, std::initializer_list<Access> accesses, uint64_t a0,
            uint64_t a1) {
  Slot& s = slot_of(op);
  __atomic_fetch_add(&s.count, 1, __ATOMIC_RELAXED);
  if (recording()) write_record(&s, pipe, accesses.begin(), accesses.size(), a0, a1);
}

void record_more(const char* op, int pipe, std::initializer_list<Access> accesses, uint64_t a0,
                 uint64_t a1) {
  if (recording()) write_record(&slot_of(op), pipe, accesses.begin(), accesses.size(), a0, a1);
}

void stream_record(const char* op, int pipe, uint64_t a0, uint64_t a1) {
  if (recording()) write_record(&slot_of(op), pipe, nullptr, 0, a0, a1);
}

void trace_op(const Slot* s) {
  Worker& w = *worker;
  if (!w.recorder) return;
  Recorder& r = *w.recorder;
  if (!w.current->in_simd) raw_flush();
  close_vector(r, *w.current);
  r.slot = s, r.site = site;
  r.accesses.clear();
  r.accesses.swap(r.loads);
}

void trace_access(const void* p, uint32_t bytes, bool write) {
  Worker& w = *worker;
  if (!w.recorder) return;
  Recorder& r = *w.recorder;
  auto offset = uint64_t(static_cast<const uint8_t*>(p) - r.ub);
  auto& to = write ? r.accesses : r.loads;
  if (!to.empty()) {
    Access& last = to.back();
    if (last.write == write && last.base + last.row_bytes == offset) {
      last.row_bytes += bytes;
      last.stride += bytes;
      return;
    }
  }
  to.push_back(rows(Space::UB, offset, 1, bytes, bytes, write, w.current->sub));
}

bool trace_sync(const char* op, int pipe, int other, uint32_t id) {
  (void)pipe, (void)other, (void)id;
  if (!tracing()) return false;
  Slot& s = slot_of(op);
  __atomic_fetch_add(&s.count, 1, __ATOMIC_RELAXED);
  return s.fault != 0;
}

void finish_block(Block& block) {
  Recorder* r = worker->recorder;
  if (!r) return;
  r->slot = nullptr;
  if (r->checks || r->journals) judge::on_block_end(block);
  auto it = r->open.find(block.index);
  if (it == r->open.end()) return;
  std::lock_guard<std::mutex> hold(stream_mutex);
  append(stream, it->second.data(), it->second.size());
  r->open.erase(it);
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
