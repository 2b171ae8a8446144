// Vector clocks over the pipes of a block, and what a block knows of other blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/state.h"

namespace ak::judge {

// A pipe of a core of the block: cube core, vector core 0, vector core 1.
constexpr uint32_t kActorsPerCore = 8, kActors = 3 * kActorsPerCore;
inline uint32_t slot_of(bool aic, uint32_t sub) { return aic ? 0 : 1 + sub; }
inline uint32_t actor_of(bool aic, uint32_t sub, uint32_t pipe) {
  return slot_of(aic, sub) * kActorsPerCore + pipe;
}

// When something happened: the actor and its time then. Zero: never.
using Epoch = uint32_t;
constexpr uint32_t kTimeBits = 27;
inline Epoch epoch(uint32_t actor, uint32_t time) { return actor << kTimeBits | time; }
inline uint32_t actor_in(Epoch e) { return e >> kTimeBits; }
inline uint32_t time_in(Epoch e) { return e & ((1u << kTimeBits) - 1); }

// For every block, how many of its releases to other blocks are known. Shared and never changed.
using Others = std::shared_ptr<const std::vector<uint32_t>>;
inline void join(Others& into, const Others& from) {
  if (!from || into == from) return;
  if (!into) {
    into = from;
    return;
  }
  auto both = std::make_shared<std::vector<uint32_t>>(*into);
  for (size_t i = 0; i < both->size(); ++i) (*both)[i] = std::max((*both)[i], (*from)[i]);
  into = std::move(both);
}

// What is known to have happened. The entry of the actor itself is what it knows to be complete:
// instructions of one pipe start in order.
struct Clock {
  uint32_t at[kActors] = {};
  Others others;
  void join(const Clock& from) {
    for (uint32_t i = 0; i < kActors; ++i) at[i] = std::max(at[i], from.at[i]);
    judge::join(others, from.others);
  }
  bool knows(Epoch e) const { return at[actor_in(e)] >= time_in(e); }
};

// One pipe: its clock, the present time, and how much of the scalar core's waits it has taken over.
struct Actor {
  Clock clock;
  uint32_t now = 1;
  size_t waits_seen = 0;
};

}  // namespace ak::judge
