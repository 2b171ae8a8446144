// printf and assert of device code go through the runtime: ordered, and reported to Python.
#pragma once

#include <assert.h>

#include "ak/scalar_math.h"

#undef assert
#define assert(condition) ((condition) ? (void)0 : ::ak::assert_failed(#condition))
#define printf(...) ::ak::print(__VA_ARGS__)
