// What comes before what in a block: clocks of its pipes, moved on by every synchronisation.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>

#include "runtime/judge/clock.h"
#include "runtime/judge/finding.h"
#include "runtime/judge/judge.h"

namespace ak::judge {

// Of an event of a core.
inline uint32_t event_key(uint32_t slot, uint32_t from, uint32_t to, uint32_t id) {
  return slot << 16 | from << 12 | to << 8 | id;
}
// Signals of one flag or event: those not yet taken, and what the protocol asks about.
struct Signals {
  struct Signal {
    Clock clock;
    uint32_t site;
  };
  std::deque<Signal> waiting;
  std::deque<Epoch> taken;  // when the last ones were taken
  uint64_t signals = 0;
  Epoch last_signal = 0, last_taken = 0;
  uint32_t last_site = 0, last_wait_site = 0;
};

// Barriers over all cores of a launch, and words of global memory that cores signal through.
struct LaunchOrder : State {
  struct Inter {
    std::vector<Others> generations;
    std::vector<uint32_t> arrivals, waits;  // by core
  };
  struct Word {
    uint32_t block;
    Clock clock;
  };
  std::mutex mutex;
  std::map<uint32_t, Inter> inter;  // by kind and id
  std::unordered_map<uint64_t, Word> words;
  std::atomic<bool> this_order{false};  // edges depend on the order of this run
};

struct Order : State {
  Actor actors[kActors];
  // Waits of the scalar core: instructions issued since come after them.
  struct Wait {
    uint32_t issue;
    Clock clock;
  };
  std::vector<Wait> waits[3];
  // Snapshots that other blocks may know, by core.
  std::vector<Clock> releases[3];
  bool this_order = false;

  // The actor of a record, brought up to what its scalar core had waited for.
  uint32_t enter(const RecordHead& head);
  // Synchronisation; nothing for other actions.
  void sync(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses,
            LaunchOrder& launch);
  void end(Block& block);  // what is left over

 private:
  Clock release(uint32_t actor);
  void acquire(uint32_t actor, const Clock& clock, uint32_t issue);
  void waited(uint32_t actor, uint32_t issue);
  void notify(const RecordHead& head, uint32_t actor);
  void take(const RecordHead& head, uint32_t actor, Signals& signals);
  void arrive(Core& core, const RecordHead& head, uint32_t actor, LaunchOrder& launch);
  void cross_wait(Core& core, const RecordHead& head, uint32_t actor, LaunchOrder& launch);
  void signal(const RecordHead& head, uint32_t actor, uint32_t target, uint32_t flag,
              const Clock& clock);
  void to_others(uint32_t block, uint32_t slot, uint32_t grid, Clock& clock);
  void unmatched(const RecordHead& head, const char* code, uint32_t other_site, uint32_t other_pipe,
                 const char* detail);

  std::unordered_map<uint32_t, Signals> events;  // by core, pipes and id
  std::unordered_map<uint32_t, Signals> flags;   // by core that waits and flag
  struct Locks {
    std::vector<Clock> unlocked;  // by number
    std::vector<bool> there;
    Clock sum;  // of the first `summed`
    size_t summed = 0;
    uint32_t locks = 0, unlocks = 0, lock_site = 0, unlock_site = 0;
    uint8_t lock_pipe = 0, unlock_pipe = 0;
  };
  std::map<uint32_t, Locks> locks;               // by core and id
  std::deque<Clock> half[2][kFlags][2];          // subblock, block: arrivals of one vector core
  std::map<uint32_t, std::vector<Clock>> inter;  // by kind and id: arrivals of this block
};

// Those of the running core.
Order& order_of(Core& core);
LaunchOrder& launch_order(Core& core);
void order_block_end(Block& block);

}  // namespace ak::judge
