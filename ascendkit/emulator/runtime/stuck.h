// Launches that cannot go on: who waits for what, and when a spin is one.
#pragma once

#include <chrono>

#include "state.h"

namespace ak {

// Nothing would change, however long one waited.
void report_deadlock(Launch& launch, const char* what);
// The time limit has passed; `moved`: cores still made progress.
void report_overdue(Launch& launch, bool moved);

// Pipes that are not idle, and whose signal a wait is for; the launch is locked.
std::string busy_pipes(const Core& c);
std::string signaller(const Core& c, Scope scope, uint32_t id);

// Turns of one worker in which its cores did nothing but read global memory: others may still write
// it. When every worker waits or spins, and nothing happens for most of a second, nobody will.
class Spinning {
 public:
  explicit Spinning(Launch& launch) : launch_(launch) {}
  ~Spinning() { stop(); }
  void turn();
  void stop();

 private:
  Launch& launch_;
  bool on_ = false;
  uint64_t seen_ = 0;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace ak
