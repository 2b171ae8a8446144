// Ascend SIMT API; one implementation serves all of its headers.
#pragma once

#include "ak/packed_cast.h"
#include "c_api/asc_simd.h"
