"""``python -m ascendkit.emulator.bench_memory``: memory of a checked launch on all 64 vector cores.

Every core fills its unified buffer from global memory, reads and stores all of it, writes one byte
of each word, which splits what judges know down to bytes, and waits for all others before it ends,
so that nothing is given back before the peak. The figure is the peak of this process, PyTorch
included; it says nothing about an NPU.
"""

from __future__ import annotations

import json
import resource
import time

COMMAND = "python -m ascendkit.emulator.bench_memory"
LIMIT_MIB = 1536
CORES, BYTES = 64, 248 << 10

_SOURCE = f"""#include <tl_templates/ascend/common.h>
#include <tl_templates/ascend/debug.h>
#include <tl_templates/ascend/simd_inst.h>
__simd_vf__ inline void bytes_simd_vf_0(__ubuf__ uint8_t* p) {{
  vector_bool m = asc_create_mask_b8(PAT_ALL);
  auto zero = simd_inst::vdup<uint8_t>(0, m, MODE_ZEROING);
  for (int32_t i = 0; i < {BYTES // 4}; ++i) {{
    simd_inst::vsts_1st(zero, p + 4 * i, 0, m);
  }}
}}
__simd_vf__ inline void all_simd_vf_0(__ubuf__ float* p) {{
  vector_bool m = asc_create_mask_b32(PAT_ALL);
  for (int32_t i = 0; i < {BYTES // 256}; ++i) {{
    simd_inst::vsts_norm(simd_inst::vlds_norm<float>(p + 64 * i, 0), p + 64 * i, 0, m);
  }}
}}
extern "C" __global__ __vector__ void everything(__gm__ float* x, __gm__ float* y) {{
  asc_init();
  __ubuf__ float *p = (__ubuf__ float *)0;
  asc_copy_gm2ub_align((__ubuf__ uint8_t*)p, (__gm__ uint8_t*)(x + {BYTES // 4} * block_idx),
                       1, {BYTES}, 0, 0, 0, static_cast<asc_load_l2_cache_mode>(0), 0, 0);
  asc_sync();
  all_simd_vf_0(p);
  asc_sync();
  bytes_simd_vf_0((__ubuf__ uint8_t*)p);
  asc_sync();
  asc_copy_ub2gm_align((__gm__ uint8_t*)(y + {BYTES // 4} * block_idx), (__ubuf__ uint8_t*)p,
                       1, {BYTES}, static_cast<asc_store_l2_cache_mode>(0), 0, 0);
  asc_sync_inter_arrive(PIPE_MTE3, 1);
  asc_sync_inter_wait(PIPE_MTE3, 1);
}}
"""


def peak_mib() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def row() -> dict[str, object]:
    """The launch, once: what it took."""
    import torch

    from ascendkit.bench.environment import commit, device_name
    from ascendkit.emulator.kernel import EmulatedKernel

    kernel = EmulatedKernel(_SOURCE)
    x, y = torch.ones(2, CORES * BYTES // 4)
    kernel.compile(trace=True, raw=True)
    before, start = peak_mib(), time.perf_counter()
    kernel.launch([x, y], grid=CORES, check=True)
    seconds = time.perf_counter() - start
    if kernel.findings or not torch.equal(x, y):
        raise RuntimeError(f"the kernel is not right: {kernel.findings}")
    peak = peak_mib()
    return {
        "name": "memory_of_64_vector_cores",
        "checked_s": round(seconds, 5),
        "peak_rss_mib": peak,
        "before_launch_mib": before,
        "limit_mib": LIMIT_MIB,
        "ok": peak <= LIMIT_MIB,
        "machine": device_name("cpu"),
        "commit": commit(),
        "command": COMMAND,
    }


if __name__ == "__main__":
    print(json.dumps(row()))
