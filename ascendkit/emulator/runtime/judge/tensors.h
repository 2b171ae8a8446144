// Global memory as a launch sees it: the bytes of every tensor's view, which of them have been
// written, and who wrote parts of a 32-byte line.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "runtime/judge/bits.h"
#include "runtime/judge/judge.h"

namespace ak::judge {

struct Tensor {
  const Region* region;
  std::vector<const View*> views;
  Bits written;  // by this launch, bytes of the region
  Bits unset;    // of these, the ones that got what nobody had written; empty: none
  // Bytes [lo, lo + bytes) of memory are in one view.
  bool holds(uint64_t lo, uint64_t bytes) const;
  // The view whose bounds are nearest to `lo`.
  const View& nearest(uint64_t lo) const;
  // Whether byte `at` of the region had a value before the launch or has one now.
  bool defined(uint64_t at) const {
    const uint8_t* undefined = region->undefined;
    return !undefined || !undefined[at] || written.test(at);
  }
};

// A part of a 32-byte line of global memory that one core wrote.
struct Edge {
  uint64_t line;
  uint32_t block, site;
  uint8_t aic, sub, pipe;
  auto order() const { return std::tuple(line, block, aic, sub, site); }
};

class Tensors {
 public:
  explicit Tensors(const Spec& spec);
  // The tensor whose region or guard bytes hold `at`; null: none.
  Tensor* find(uint64_t at);
  std::vector<Tensor>& all() { return tensors_; }

 private:
  std::vector<Tensor> tensors_;  // by address
};

// Bytes [lo, hi) of a view, as text: "out: bytes [64, 68), 4 past the end of its 64".
void describe(char (&text)[256], const Tensor& tensor, uint64_t lo, uint64_t bytes);

}  // namespace ak::judge
