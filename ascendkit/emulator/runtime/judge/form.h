// What the memory judge sees in an instruction.
#pragma once

#include "runtime/record.h"

namespace ak::judge {

// Instructions whose data goes from one place to another unchanged, or that need a closer look.
enum class Form : uint8_t {
  Unknown,  // not looked up yet
  Plain,
  Nothing,
  Gm2Ub,
  Ub2Gm,
  RowByRow,   // source and destination rows correspond
  Transpose,  // L1 -> L0
  Product,
  ScaledProduct,
  FixPipe,
  Sort,
  Raw,
};
Form form(const Slot& slot);

}  // namespace ak::judge
