// Keywords, pipes, events and the small enums of the Ascend 950 C API.
// Written from the names TileLang emits; see PROVENANCE.md.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define __NPU_ARCH__ 3510

// Address spaces and function kinds carry no meaning for a host compiler.
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __ssbuf__
#define __aicore__
#define __simd_vf__
#define __simd_callee__
#define __simt_vf__
#define __simt_callee__
#define __global__
#define __vector__
#define __cube__
#define __mix__(cube, vector)
#define __launch_bounds__(threads)
#define __grid_constant__
#define __SIMT_DEVICE_FUNCTIONS_DECL__

namespace AscendC {}
// Debug helpers exist once per execution context; on a host either copy serves.
namespace __asc_aicore {}
namespace __asc_simt_vf {}
using namespace __asc_aicore;

enum pipe_t : uint8_t {
  PIPE_S,
  PIPE_V,
  PIPE_M,
  PIPE_MTE1,
  PIPE_MTE2,
  PIPE_MTE3,
  PIPE_FIX,
  PIPE_ALL,
};
enum event_t : uint32_t {};

enum asc_lock_mode : uint8_t { ASC_LOCK_BLOCK, ASC_LOCK_NON_BLOCK };
enum asc_load_l2_cache_mode : uint8_t {};
enum asc_store_l2_cache_mode : uint8_t {};
enum asc_unit_flag_mode : uint8_t {};
enum asc_quant_mode : uint8_t {};
enum asc_relu_pre_mode : uint8_t {};
enum asc_dual_dst_mode : uint8_t {};
enum class asc_hf32_round_mode : uint8_t { NEAREST_EVEN, NEAREST_AWAY };

// Register-memory ordering inside one vector function: <first>_<second>.
enum asc_mem_type : uint8_t {
  VV_ALL,
  VST_VLD,
  VLD_VST,
  VST_VST,
  VS_ALL,
  VST_LD,
  VLD_ST,
  VST_ST,
  SV_ALL,
  ST_VLD,
  LD_VST,
  ST_VST,
  SS_ALL,
  ST_LD,
  LD_ST,
  ST_ST,
};
