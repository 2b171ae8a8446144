// The few names of the class library that the emulator knows: see ak/helpers.h.
#pragma once

#include "c_api/asc_simd.h"
