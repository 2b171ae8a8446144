// The judge of memory at work.
#pragma once

#include <mutex>

#include "runtime/judge/form.h"
#include "runtime/judge/memory.h"
#include "runtime/judge/tensors.h"

namespace ak::judge {

constexpr uint64_t kLine = 32;  // bytes that memories move at once, on chip and to global memory

struct LaunchMemory : State {
  explicit LaunchMemory(const Spec& spec) : tensors(spec) {}
  Tensors tensors;
  std::mutex mutex;
  std::vector<Candidate> candidates;
  std::vector<Edge> edges;
  bool order_matters = false;
};

struct BlockMemory : State {
  Bits defined[16][2];  // by space and vector core
  std::vector<Candidate> candidates;
  std::vector<Edge> edges;
  bool order_matters = false;
  Tensor* tensor = nullptr;  // of the last access
};

// Lines of global memory that several cores wrote parts of.
void shared_lines(std::vector<Edge>& edges);

// One record on its way through the judge.
class Look {
 public:
  Look(Core& c, const RecordHead& h)
      : head_(h),
        block_(*static_cast<BlockMemory*>(c.block->judges.of[kMemory])),
        bank_(*c.block->bank),
        spec_(c.block->launch->spec),
        launch_(*static_cast<LaunchMemory*>(c.block->launch->judges.of[kMemory])),
        data_(!(spec_.flags & kControl)),
        advice_(spec_.flags & kAdvice) {}

  void run(Form form, const Slot& slot, const Access* a, uint32_t n);

 private:
  static uint64_t at(const Access& a, uint64_t row) {
    return a.base + uint64_t(a.stride * int64_t(row));
  }
  Bits& bits(const Access& a) {
    Bits& b = block_.defined[a.space][Space(a.space) == Space::UB ? a.sub : 0];
    if (!b.size()) b = Bits(capacity(Space(a.space)));
    return b;
  }
  Finding finding(const char* code, const Access& a, uint64_t base, uint64_t bytes) const;

  // global memory
  void global(const Access& a, Form form);
  void outside(Tensor& t, const Access& a, Form form);
  void written(Tensor& t, const Access& a);
  void watch(const Access& a);
  void edge(uint64_t line);
  std::pair<uint64_t, uint64_t> undefined(Tensor& t, uint64_t lo, uint64_t bytes) const;
  void store(const Access& from, const Access& to);
  void unset(const Access& to, uint64_t lo, uint64_t bytes);

  // on chip
  void candidate(const Access& a, uint64_t base, uint64_t end);
  void plain(const Access* a, uint32_t n);
  void read(const Access& a);
  void copy_in(const Access& from, const Access& to);
  void transpose(const Access& from, const Access& to);

  // matrix unit
  uint64_t m() const { return head_.argument[0] >> 40; }
  uint64_t n() const { return head_.argument[0] >> 20 & 0xfffff; }
  uint64_t k() const { return head_.argument[0] & 0xfffff; }
  void operand(const Access& a, uint64_t rows, const char* name);
  void scales(Space space, uint64_t base, uint64_t rows, uint64_t pairs, const char* name);
  void undefined_operand(const Access& a, std::pair<uint64_t, uint64_t> range, const char* name);
  void tail(const Access& a, const Access& b);
  void product(const Access* a, bool scaled);

  // bursts
  void bursts(const Access& gm, const Access& chip, uint64_t length);

  const RecordHead& head_;
  BlockMemory& block_;
  const Bank& bank_;
  const Spec& spec_;
  LaunchMemory& launch_;
  bool data_, advice_;
};

}  // namespace ak::judge
