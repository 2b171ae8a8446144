// The record stream: one record an executed instruction, with its site, pipe and memory ranges.
#pragma once

#include <initializer_list>
#include <unordered_map>

#include "state.h"

namespace ak {

// rows of row_bytes bytes, `stride` bytes apart, at `base` (an offset on chip, an address in GM).
struct Access {
  uint8_t space, write, sub, atomic;  // atomic: such accesses commute
  uint32_t rows;
  uint64_t base, row_bytes;
  int64_t stride;
};
struct RecordHead {
  uint32_t op, site;  // op indexes the slot table
  uint32_t block;
  uint8_t pipe, aic, sub, accesses;
  uint64_t argument[2];  // sync: other pipe and id; mmad: shape; SIMT: threads
  // Instructions that its scalar core had issued, this one included. What the scalar core had
  // waited for by then, this instruction comes after.
  uint32_t issue, reserved;
};

// What an instruction is to the judges. Copies, products and vector instructions are Plain.
enum class Action : uint8_t {
  Plain,
  Notify,     // argument: other pipe, id
  Wait,       // argument: other pipe, id
  SyncAll,    // every pipe has drained
  SyncPipe,   // one pipe is ordered with itself
  Lock,       // argument: unlocks of the id that it waits for, id
  Unlock,     // argument: its number among the unlocks of the id, id
  Arrive,     // argument: Scope, id
  CrossWait,  // argument: Scope, id
  SimdBegin,
  SimdEnd,
  SimtBegin,
  SimtEnd,      // begin: argument: threads, threads along x
  MemBar,       // argument: asc_mem_type
  SimtBarrier,  // argument: thread
  Warp,         // a collective; argument: thread
  Mmad,         // argument: shape, unit flag | clear << 8 | bits of an element << 16
  FixPipe,      // argument: unit flag, quantisation | Atomic << 8
  LoadDev,
  StoreDev,  // scalar access past the data cache
  Raw,       // scalar or SIMT code; argument: thread (SIMT), 1 if SIMT
  Atomic,    // SIMT atomic; argument: thread
};

// What a worker needs to make records. Hooks run at every instruction, and each look-up of a
// thread's own variables costs as much as all they do: they are here, behind `worker`.
struct Recorder {
  explicit Recorder(const Spec& spec);
  const bool streams, checks, journals;
  const uint8_t* ub = nullptr;  // of the running core
  // The vector instruction being executed: its loads come before it, its stores after.
  const Slot* slot = nullptr;  // null: none is open
  uint32_t site = 0;
  std::vector<Access> loads, accesses;
  // Records of running blocks, appended to the stream when the block ends.
  std::unordered_map<uint32_t, std::vector<char>> open;
};

// Counts an executed instruction and, at trace level 2, writes its record.
void record(const char* op, int pipe, std::initializer_list<Access> accesses, uint64_t a0 = 0,
            uint64_t a1 = 0);
// A further record of the same instruction, not counted.
void record_more(const char* op, int pipe, std::initializer_list<Access> accesses, uint64_t a0,
                 uint64_t a1);
// The record alone: synchronisation is counted at issue and recorded when its pipe gets there.
void stream_record(const char* op, int pipe, uint64_t a0, uint64_t a1);
// A record made elsewhere (raw.cc), of the core that runs.
void write_raw(const Slot& s, const RecordHead& head, const Access& access);
bool holds_atomic();  // the running code is inside an atomic of global memory
Access range(Space space, const void* p, uint64_t bytes, bool write);
Access rows(Space space, uint64_t base, uint64_t count, uint64_t bytes, int64_t stride, bool write,
            uint32_t sub = 0);
inline bool recording() { return worker->recorder; }
void record_begin(Core& core);  // from here on records are those of `core`
inline bool tracing() { return worker->launch->spec.trace != 0; }
// The fault a test has armed in `op`: 0 for none, else a kind of corrupt().
uint32_t fault_of(const char* op);
// Instructions that set or order something do nothing when a fault is armed.
inline bool dropped(const char* op) { return tracing() && fault_of(op); }
// Instructions that write spoil what they have written.
inline void spoil(const char* op, void* result, uint64_t bytes, uint32_t lane_bytes) {
  if (!tracing()) return;
  if (uint32_t kind = fault_of(op)) corrupt(kind, result, uint32_t(bytes), lane_bytes);
}

}  // namespace ak
