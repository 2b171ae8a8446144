#include "mutate.h"

#include <cstring>

#include "record.h"

namespace ak {

bool mutating = false;

namespace {
std::vector<Mutation> mutations;

bool is_motion(const Mutation& m) {
  return Mutant(m.kind) == Mutant::Earlier || Mutant(m.kind) == Mutant::Later;
}
bool same(uint32_t wanted, uint32_t got) { return wanted == ~0u || wanted == got; }

const Mutation* find(const char* op) {
  for (const Mutation& m : mutations)
    if (m.site == site && std::strcmp(m.op, op) == 0) return &m;
  return nullptr;
}
const Mutation* find_sync(const char* op, uint32_t pipe, uint32_t other, uint32_t id) {
  for (const Mutation& m : mutations)
    if (m.site == site && same(m.pipe, pipe) && same(m.other, other) && same(m.id, id) &&
        std::strcmp(m.op, op) == 0)
      return &m;
  return nullptr;
}

void push_held(Core& c) {
  std::unique_ptr<Motion::Held> held = std::move(c.motion->held);
  if (!held) return;
  uint32_t at = site;
  site = held->site;
  c.motion->issuing = true;
  enqueue(held->pipe, held->task.release());
  c.motion->issuing = false;
  site = at;
}
}  // namespace

bool mutate_sync_slow(const char* op, pipe_t& pipe, pipe_t& other, uint32_t& id, uint32_t limit,
                      const std::function<void()>& again) {
  Core& c = core();
  if (c.motion && c.motion->issuing) return false;
  const Mutation* m = find_sync(op, pipe, other, id);
  if (!m) return false;
  switch (Mutant(m->kind)) {
    case Mutant::Drop:
      return true;
    case Mutant::Renumber: {
      // A cube core's ids from 16 are those of its second vector core: the half stays.
      uint32_t half = limit == 32 && c.aic && std::strstr(op, "intra") ? id & 16 : 0;
      uint32_t range = half || (limit == 32 && std::strstr(op, "intra")) ? 16 : limit;
      id = half + uint32_t(int64_t(id - half) + m->amount + range) % range;
      return false;
    }
    case Mutant::SwapPipes:
      std::swap(pipe, other);
      return false;
    case Mutant::OtherPipe:
      pipe = pipe_t(m->amount);
      return false;
    case Mutant::Earlier: {
      // The instruction first, then the one that was held back for it.
      Motion& motion = *c.motion;
      std::unique_ptr<Motion::Held> held = std::move(motion.held);
      motion.issuing = true;
      again();
      motion.issuing = false;
      motion.held = std::move(held);
      push_held(c);
      return true;
    }
    case Mutant::Later:
      motion_finish(c);  // a second one before any successor: the first has none
      c.motion->pending = again;
      c.motion->pending_site = site;
      return true;
    default:
      return false;
  }
}

bool mutate_fields(const char* op, std::initializer_list<Field> fields) {
  if (!mutating) return false;
  const Mutation* m = find(op);
  if (!m) return false;
  if (Mutant(m->kind) == Mutant::Drop) return true;
  for (const Field& f : fields) {
    if (uint32_t(f.kind) != m->kind) continue;
    uint64_t value = 0;
    std::memcpy(&value, f.at, f.bytes);
    value += uint64_t(int64_t(m->amount));
    std::memcpy(f.at, &value, f.bytes);
    break;
  }
  return false;
}

bool mutated_away(const char* op) {
  const Mutation* m = find(op);
  return m && Mutant(m->kind) == Mutant::Drop;
}

void mutate_mask(const char* op, uint8_t* bits, uint32_t lane_bytes) {
  const Mutation* m = find(op);
  if (!m || Mutant(m->kind) != Mutant::Mask) return;
  uint32_t lanes = 256 / lane_bytes, end = lanes;
  while (end > 0 && !bits[(end - 1) * lane_bytes]) --end;
  if (m->amount < 0 && end > 0) bits[(end - 1) * lane_bytes] = 0;
  if (m->amount > 0 && end < lanes) bits[end * lane_bytes] = 1;
}

void start_motion(Core& c) {
  for (const Mutation& m : mutations)
    if (is_motion(m)) {
      c.motion = std::make_shared<Motion>();
      c.motion->pipe = m.pipe;
      // A wait queues on the pipe that it holds.
      if (std::strcmp(m.op, "asc_sync_wait") == 0) c.motion->pipe = m.other;
      c.motion->earlier = Mutant(m.kind) == Mutant::Earlier;
      return;
    }
}

bool motion_watches(const Core& c, int pipe) {
  return c.motion && c.motion->concerns(uint32_t(pipe));
}

bool motion_holds(Core& c, pipe_t pipe, Task* task) {
  Motion* motion = c.motion.get();
  if (!motion || motion->issuing || !motion->earlier || !motion->concerns(pipe)) return false;
  push_held(c);
  motion->held =
      std::make_unique<Motion::Held>(Motion::Held{std::unique_ptr<Task>(task), pipe, site});
  return true;
}

void motion_issued(Core& c, pipe_t pipe) {
  Motion* motion = c.motion.get();
  if (!motion || !motion->concerns(pipe)) return;
  if (!motion->issuing && motion->pending) motion_finish(c);
  // Without a blocked wait in front an instruction runs when it is issued.
  if (!worker->launch->spec.replay) pump(c);
}

void motion_flush(Core& c) {
  if (c.motion && !c.motion->issuing) push_held(c);
}

void motion_finish(Core& c) {
  Motion* motion = c.motion.get();
  if (!motion) return;
  motion_flush(c);
  if (!motion->pending) return;
  std::function<void()> again = std::move(motion->pending);
  motion->pending = nullptr;
  uint32_t at = site;
  site = motion->pending_site;
  motion->issuing = true;
  again();
  motion->issuing = false;
  site = at;
}

}  // namespace ak

extern "C" AK_API void ak_set_mutations(const ak::Mutation* list, uint64_t n) {
  ak::mutations.assign(list, list + n);
  ak::mutating = n != 0;
}
int32_t ak_shift(uint32_t place) {
  if (!ak::mutating) return 0;
  for (const ak::Mutation& m : ak::mutations)
    if (ak::Mutant(m.kind) == ak::Mutant::Shift && m.site == place) return m.amount;
  return 0;
}
extern "C" AK_API uint32_t ak_mutation_bytes() { return sizeof(ak::Mutation); }
