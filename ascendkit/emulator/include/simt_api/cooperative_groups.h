// cooperative_groups::coalesced_threads().sync().
#pragma once

#include "ak/simt.h"
