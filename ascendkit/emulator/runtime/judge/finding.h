// A finding: what a judge has to say about one launch. Findings never stop it.
#pragma once

#include <cstdint>

#include "ak/runtime.h"

namespace ak {

// Plain data, mirrored field by field in device.py. `site` is the later access, `other_site` the
// earlier one (0: there is none). `base` is an offset on chip and an address in global memory.
struct Finding {
  char code[24];
  uint32_t site, other_site;
  uint32_t block, other_block;
  uint8_t aic, sub, pipe, other_pipe, other_aic, other_sub, space, write, other_write;
  uint8_t this_order;  // 1: judged for the order of this run, not for all schedules
  uint32_t part;       // of what is one mistake else; 0: the only one
  uint64_t base, bytes, count;
  char detail[256];
};

// Adds a finding. Those of one code, sites, pipes, space and part are one: `count` says how often,
// and the one of the lowest block and address stands for all, whatever the order of the calls.
void report(const Finding& finding);

}  // namespace ak

extern "C" {
// The findings since the last call of ak_clear_findings, sorted.
AK_API uint64_t ak_findings(const ak::Finding** found);
AK_API void ak_clear_findings();
AK_API uint32_t ak_finding_bytes();
}
