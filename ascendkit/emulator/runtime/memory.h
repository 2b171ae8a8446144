// On-chip memories of one AI core: two unified buffers and the cube core's buffers, each between
// inaccessible pages so that a stray scalar access faults instead of reading a neighbour.
#pragma once

#include <cstdint>

#include "ak/runtime.h"

namespace ak {

constexpr uint64_t kUbBytes = 256 << 10, kL1Bytes = 512 << 10, kL0ABytes = 64 << 10,
                   kL0BBytes = 64 << 10, kL0CBytes = 256 << 10, kBtBytes = 4 << 10,
                   kFbBytes = 4 << 10, kScaleBytes = 4 << 10, kSsBytes = 3 << 10;
// Inaccessible bytes on both sides of each memory; only addresses are spent on them.
constexpr uint64_t kGuardBytes = 16 << 20;
constexpr uint8_t kPoison = 0xff;  // NaN in every float format, -1 in every integer

// What memory holds before anybody writes it. All ones, or large numbers of alternating sign: where
// a result differs between the two, it depends on memory that nobody wrote.
enum class Poison : uint32_t { Ones, Large, Opposite };
struct PoisonRange {
  uint32_t space, sub;
  uint64_t base, bytes;
};
struct Poisoning {
  Poison kind;
  uint32_t count;             // ranges that get `kind`, the rest gets ones; 0: everything gets it
  const PoisonRange* ranges;  // offsets on chip
};
// Fills bytes whose first has offset `at`.
void fill_poison(uint8_t* memory, uint64_t at, uint64_t bytes, Poison kind);

struct Bank {
  uint8_t* ub[2];
  uint8_t *l1, *l0a, *l0b, *l0c, *bt, *fb, *mxa, *mxb;
  uint8_t* ss;  // scalar words that the cores of a block share
  uint8_t* of(Space space, uint32_t sub) const;
};
uint64_t capacity(Space space);
const char* space_name(Space space);

// Poisoned memories for one block; cube memories are only touched when `cube`.
Bank* acquire_bank(bool cube, uint32_t vector_cores, const Poisoning& poison);
void release_bank(Bank* bank);
// A bank that nothing may touch, for launches that move no data.
Bank* blind_bank();

}  // namespace ak
