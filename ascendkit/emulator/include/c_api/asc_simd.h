// Ascend C vector, copy, synchronisation and matrix API.
#pragma once

#include "ak/print.h"
