// The record stream: one record an executed instruction, with its site, pipe and memory ranges.
#pragma once

#include <initializer_list>

#include "state.h"

namespace ak {

// rows of row_bytes bytes, `stride` bytes apart, at `base` (an offset on chip, an address in GM).
struct Access {
  uint8_t space, write, sub, reserved;
  uint32_t rows;
  uint64_t base, row_bytes;
  int64_t stride;
};
struct RecordHead {
  uint32_t op, site;       // op indexes the slot table
  uint32_t block;
  uint8_t pipe, aic, sub, accesses;
  uint64_t argument[2];    // sync: other pipe and id; mmad: shape; SIMT: threads
};

void record(const char *op, int pipe, std::initializer_list<Access> accesses, uint64_t a0 = 0,
            uint64_t a1 = 0);
Access range(Space space, const void *p, uint64_t bytes, bool write);
Access rows(Space space, uint64_t base, uint64_t count, uint64_t bytes, int64_t stride, bool write,
            uint32_t sub = 0);
inline bool tracing() { return worker->launch->spec.trace != 0; }

}  // namespace ak
