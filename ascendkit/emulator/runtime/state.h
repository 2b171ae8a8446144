// The state of a launch: cores, their pipes and on-chip memories, the blocks and the workers.
#pragma once

#include <setjmp.h>
#include <time.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ak/trace.h"
#include "fiber.h"
#include "memory.h"

namespace ak {

constexpr int kPipes = 7, kEvents = 8, kLocks = 32, kFlags = 32;
const char* pipe_name(int pipe);

struct Queued {
  std::unique_ptr<Task> task;
  uint32_t site, issue;
};
// What somebody waits for, for the deadlock report. `signalled`: it is an event, flag or lock, and
// `last` is the line that last gave it, by pipe `from`.
struct Waits {
  std::string text;
  bool signalled = false;
  uint32_t last = 0, from = 0;
};
struct WaitTask : Task {
  virtual Waits describe() const = 0;
};

struct LockState {
  uint64_t issued = 0;          // unlocks seen in program order
  uint64_t done = 0;            // unlocks executed
  uint32_t site = 0, pipe = 0;  // of the last unlock seen
};

// Registers of the scalar core that copies and the matrix unit read when they are issued.
struct Modes {
  uint32_t pad_value = 0;
  uint32_t nz_count = 1, nz_row_stride = 1, nz_c0_stride = 1, nz_matrix_stride = 0;
  Atomic atomic = Atomic::None;
  Dtype atomic_type = Dtype::Other;
  bool hf32 = false;
  asc_hf32_round_mode hf32_round = asc_hf32_round_mode::NEAREST_EVEN;
  uint32_t nd_count = 1, nd_src_stride = 0, nd_dst_stride = 0;
  int64_t squeezed = -1;
};

namespace judge {
struct State;
struct States {  // one pointer a judge, owned
  State* of[8] = {};
  States() = default;
  States(const States&) = delete;
  ~States();
};
}  // namespace judge

struct Block;
struct Simt;
struct Motion;
struct Core {
  bool aic = false;
  uint32_t sub = 0, index = 0;  // index among the cores of its kind
  Block* block = nullptr;
  Fiber fiber;
  bool started = false, done = false, progress = false, polling = false;
  std::function<Waits()> waiting;  // what the scalar core is blocked on
  uint32_t site = 0;
  std::deque<Queued> queue[kPipes];
  bool pumping = false, in_simd = false;
  uint32_t flag[kPipes][kPipes][kEvents] = {};
  LockState lock[kLocks];
  std::atomic<int> cross[kFlags] = {};
  Modes modes;
  Simt* simt = nullptr;
  std::shared_ptr<Motion> motion;  // a mutant that reorders, see mutate.h
  uint32_t polls = 0;
  // Instructions issued so far, and the number of the one that is being executed.
  uint32_t issued = 0, running = 0;
  // Lines that last set and last took an event, and that last signalled a flag of this core.
  uint32_t set_at[kPipes][kPipes][kEvents] = {}, taken_at[kPipes][kPipes][kEvents] = {};
  uint32_t signalled_at[kFlags] = {};
  uint8_t signalled_by[kFlags] = {};  // pipe
  std::string name() const;
};

struct Launch;
struct Block {
  uint32_t index = 0;
  Launch* launch = nullptr;
  std::vector<std::unique_ptr<Core>> cores;
  Bank* bank = nullptr;
  int sub_arrived[kFlags][2] = {};    // subblock scope: arrivals of each vector core
  int block_arrived[kFlags][2] = {};  // block scope, towards the cube core
  judge::States judges;
  Core* cube() const;
  Core* vector(uint32_t sub) const;
};

// Memory that a kernel may address. Guard bytes around it belong to nobody; a copy that reaches
// them fails, scalar code that does is found out.
struct Region {
  uint64_t base, bytes;
  const char* name;
  uint64_t before, after;    // guard bytes
  const uint8_t* undefined;  // not 0: this byte has no value before the launch; null: all have one
};
// The bytes of one tensor inside a region: `run` bytes, repeated along dimensions of falling
// stride.
constexpr uint32_t kViewDims = 8;
struct View {
  uint64_t base, run;
  const char* name;
  uint32_t region, dims;
  uint64_t size[kViewDims], stride[kViewDims];
};

// The kernel reads pointers from memory, so that unknown addresses may be right.
constexpr uint64_t kIndirect = 1;
// Follow control flow and count, move and compute nothing: for shapes too large to run.
constexpr uint64_t kControl = 2;
// Judges read the records while they are made; the traced build runs.
constexpr uint64_t kCheck = 4;
// Each core keeps a journal of its instructions, to be compared with that of another launch.
constexpr uint64_t kJournal = 8;
// Copies of one pipe are not in order either, unless a barrier or an event orders them.
constexpr uint64_t kStrict = 32;
// Judges also say what is right but slow.
constexpr uint64_t kAdvice = 16;

enum class Kind : uint32_t { Vector, Cube, Mixed };

// What Python passes in and gets back; mirrored field by field in launch.py.
struct Spec {
  void (*entry)(void**);
  void** args;
  const Region* regions;
  uint64_t region_count;
  uint32_t grid, kind, cores, threads;
  uint32_t replay;  // 0: eager; else the seed of an adversarial order
  uint32_t trace;
  double timeout_s;
  uint64_t flags;  // kIndirect and the like
  const View* views;
  uint64_t view_count;
  Poisoning poison;
};
struct Report {
  char code[32];
  char message[2048];
  uint32_t site, block, sub, aic;
  uint64_t address, pc;
};

struct Launch {
  const Spec& spec;
  Report& report;
  std::mutex mutex;
  std::atomic<bool> aborted{false};
  std::atomic<uint32_t> next_block{0}, active{0}, finished{0};
  std::atomic<uint64_t> epoch{0};  // bumped by everything another worker may wait for
  std::atomic<uint32_t> idle{0}, spinning{0}, workers{0};
  std::vector<Core*> by_kind[2];  // [vector, cube], by index
  std::vector<int> inter[2][kFlags];
  judge::States judges;
  uint64_t text_begin = 0, text_end = 0;  // machine code of the kernel, if there is a time limit
  uint32_t cores_of(bool aic) const;
};
// Ends a worker's core that does not return before the time limit.
struct Deadline {
  explicit Deadline(const Launch& launch);
  ~Deadline();
  timer_t timer;
  bool armed = false;
};
void prepare_deadline(Launch& launch);

struct SlotCache {
  static constexpr size_t kEntries = 64;
  struct Entry {
    const char* op = nullptr;
    Slot* slot = nullptr;
  } of[kEntries];
};
struct Recorder;
struct Worker {
  Launch* launch = nullptr;
  Recorder* recorder = nullptr;  // somebody reads records (record.h)
  Fiber main;
  sigjmp_buf escape;
  Core* current = nullptr;
  const Core* overdue = nullptr;  // ran when the time limit passed, and had issued this many
  uint32_t overdue_issued = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  uint64_t rng = 0;
  SlotCache slots;
};
extern thread_local Worker* worker;
inline Core& core() { return *worker->current; }
inline bool control() { return worker->launch->spec.flags & kControl; }
inline bool checking() { return worker->launch->spec.flags & kCheck; }
inline bool journaling() { return worker->launch->spec.flags & kJournal; }
// Turns of a loop over data: none when nothing is moved.
inline uint64_t turns(uint64_t n) { return control() ? 0 : n; }
[[noreturn]] void needs_data(const char* what);

void yield();  // back to the worker; returns when this core is resumed
void block_until(const std::function<bool()>& ready, const std::function<Waits()>& what);
void pump(Core& c);
void run_worker(Launch& launch);
void check_gm(const char* op, const void* p, uint64_t bytes);
void check_ub(const char* op, const void* p, uint64_t bytes, uint32_t align);
uint64_t check_local(const char* op, Space space, uint64_t offset, uint64_t bytes, uint32_t align);
bool trace_sync(const char* op, int pipe, int other, uint32_t id);  // true: a test drops it
void finish_block(Block& block);
void release_atomics();            // on failure: a jump out of an atomic runs no destructor
void abandon_threads(Core& core);  // gives back the stacks of SIMT threads after a failure
uint32_t slot_index(const Slot* s);
void install_signal_handlers();
[[noreturn]] void leave(const char* code, const char* message, uint64_t address, uint64_t pc);
uint64_t program_counter(void* context);
void use_alternate_stack();

}  // namespace ak
