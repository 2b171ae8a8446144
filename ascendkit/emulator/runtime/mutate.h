// Mutants at run time: a launch executes one instruction of the source differently, without being
// compiled again. What is tested is whether somebody notices.
#pragma once

#include <functional>
#include <initializer_list>

#include "state.h"

namespace ak {

// Mirrored in mutants.py.
enum class Mutant : uint32_t {
  None,
  Drop,      // the instruction is not there
  Earlier,   // it changes places with the previous instruction of its pipe
  Later,     // ... with the next one
  Renumber,  // the id of a flag or lock grows by `amount`, within its legal range
  SwapPipes,
  OtherPipe,  // of an instruction that names one pipe: `amount` is the new one
  Count,      // a field of a copy or product grows by `amount`: rows,
  Bytes,      // the length of a row,
  Source,     // where it reads,
  Target,     // where it writes,
  SourceStride,
  TargetStride,
  Mask,   // a predicate: one more (amount > 0) or one less active lane at its end
  Shift,  // what ak_shift returns in place `site` of a source that was prepared for it
};

// Which executions are meant: all of `op` at line `site`; synchronisation also by pipes and id.
struct Mutation {
  uint32_t kind, site;
  char op[40];
  uint32_t pipe, other, id;  // ~0u: any
  int32_t amount;
};

// `mutating` (trace.h): the launch that runs has mutants; only one at a time may.

// Synchronisation on `pipe` (and `other`): true if it is not to be executed now. `again` issues it.
bool mutate_sync_slow(const char* op, pipe_t& pipe, pipe_t& other, uint32_t& id, uint32_t limit,
                      const std::function<void()>& again);
template <class AGAIN>
inline bool mutate_sync(const char* op, pipe_t& pipe, pipe_t& other, uint32_t& id, uint32_t limit,
                        AGAIN again) {
  return mutating && mutate_sync_slow(op, pipe, other, id, limit, again);
}

struct Field {
  Mutant kind;
  void* at;
  uint32_t bytes;
  template <class T>
  Field(Mutant k, T& value)
      : kind(k), at(const_cast<std::remove_const_t<T>*>(&value)), bytes(sizeof value) {}
};
// A copy or product with these fields: changes one of them; true if it is not to be executed.
bool mutate_fields(const char* op, std::initializer_list<Field> fields);

// One instruction out of order on a core.
struct Motion {
  struct Held {
    std::unique_ptr<Task> task;
    pipe_t pipe;
    uint32_t site;
  };
  uint32_t pipe = PIPE_ALL;  // whose order changes; PIPE_S and PIPE_ALL: that of the scalar core
  bool earlier = false;
  bool issuing = false;           // inside the moved instruction
  std::unique_ptr<Held> held;     // the instruction that an earlier one may overtake
  std::function<void()> pending;  // the instruction that waits for its successor
  uint32_t pending_site = 0;
  bool concerns(uint32_t p) const { return pipe == PIPE_ALL || pipe == PIPE_S || pipe == p; }
};
void start_motion(Core& c);
// True: the queue of `pipe` must see every instruction.
bool motion_watches(const Core& c, int pipe);
// Takes the task over, or not; then the caller queues it and calls motion_issued.
bool motion_holds(Core& c, pipe_t pipe, Task* task);
void motion_issued(Core& c, pipe_t pipe);
void motion_flush(Core& c);   // the scalar core waits: nothing may be held back
void motion_finish(Core& c);  // the kernel has ended

}  // namespace ak
