"""``python -m ascendkit.emulator bench``: how fast the emulator itself is, on this host.

The figures are seconds of this CPU. They are about the emulator, never about an NPU.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

COMMAND = "python -m ascendkit.emulator bench"


@dataclass(frozen=True)
class Speed:
    """One line of results; ``limit`` is the bound ``value`` must keep (at most, or at least)."""

    name: str
    value: float
    unit: str
    limit: float
    at_least: bool
    machine: str
    cpus: int
    commit: str
    command: str = COMMAND

    @property
    def ok(self) -> bool:
        """Whether the bound is kept."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


_RATE = """#include <tl_templates/ascend/common.h>
#include <tl_templates/ascend/debug.h>
#include <tl_templates/ascend/simd_inst.h>
__simd_vf__ inline void rate_simd_vf_0(__ubuf__ float* p, int32_t n) {
  vector_bool m = asc_create_mask_b32(PAT_ALL);
  for (int32_t i = 0; i < n; ++i) {
    auto a = simd_inst::vlds_norm<float>(p, 0);
    auto b = simd_inst::vlds_norm<float>(p + 64, 0);
    auto c = simd_inst::vadd(a, b, m, MODE_ZEROING);
    auto d = simd_inst::vmul(c, b, m, MODE_ZEROING);
    auto e = simd_inst::vmax(d, a, m, MODE_ZEROING);
    auto f = simd_inst::vmuls(e, 0.5f, m, MODE_ZEROING);
    auto k = simd_inst::vcmp_lt(f, a, m);
    auto g = simd_inst::vsel(f, a, k);
    simd_inst::vsts_norm(g, p + 128, 0, m);
  }
}
extern "C" __global__ __vector__ void rate(__gm__ float* x, int32_t n) {
  asc_init();
  __ubuf__ float *p = (__ubuf__ float *)0;
  asc_copy_gm2ub_align((__ubuf__ uint8_t*)p, (__gm__ uint8_t*)x, 1, 1024, 0, 0, 0,
                       static_cast<asc_load_l2_cache_mode>(0), 0, 0);
  asc_sync();
  rate_simd_vf_0(p, n);
  asc_sync();
}
"""
_RATE_INSTRUCTIONS = 9  # of each turn of the loop


def measure() -> Iterator[Speed]:
    """All figures, one after another."""
    import torch

    from ascendkit.bench.environment import commit, device_name
    from ascendkit.emulator import active, samples
    from ascendkit.emulator.kernel import EmulatedKernel

    machine, cpus, at = device_name("cpu"), len(os.sched_getaffinity(0)), commit()

    def speed(name: str, value: float, unit: str, limit: float, at_least: bool = False) -> Speed:
        return Speed(name, value, unit, limit, at_least, machine, cpus, at)

    rate, turns = EmulatedKernel(_RATE), 200_000
    x = torch.randn(256)
    rate.launch([x, turns], grid=1)
    # CPU seconds: the bound is about one thread, however busy the machine is.
    seconds = _best(lambda: rate.launch([x, turns], grid=1), 5, time.process_time)
    instructions = _RATE_INSTRUCTIONS * turns / seconds / 1e6
    yield speed("vector_instructions_one_thread", instructions, "M/s", 20, at_least=True)
    with active():
        unseen = 1024 * (1 + time.time_ns() // 1000 % 100_000)
        start = time.perf_counter()
        a, b = torch.randn(2, unseen)
        samples.add(unseen)(a, b)
        yield speed("cold_start_small_kernel", time.perf_counter() - start, "s", 10)
        a, b = torch.randn(2, 1024)
        add = samples.add(1024)
        add(a, b)
        yield speed("warm_call", 1e3 * _best(lambda: add(a, b), 50), "ms", 1)
        a, b = torch.randn(2, 1024, 1024).bfloat16()
        matmul = samples.matmul(1024, 1024, 1024)
        matmul(a, b)
        yield speed("bf16_gemm_1024", _best(lambda: matmul(a, b), 5), "s", 1)
    if find_spec("tile_kernels"):
        yield speed("per_token_cast_4096_7168", _per_token_cast(), "s", 2)


def _per_token_cast() -> float:
    """A peer's kernel at a real shape."""
    import torch

    from ascendkit.emulator import as_npu

    with as_npu():
        from tile_kernels.quant.per_token_cast_kernel import per_token_cast

        x = torch.randn(4096, 7168).bfloat16()

        def call() -> None:
            per_token_cast(x, "e4m3", 32, round_sf=True, use_packed_ue8m0=True)

        call()
        return _best(call, 3)


def main(path: Path | None) -> int:
    """Print the figures, append them to ``path``; 1 if one misses its bound."""
    late = 0
    for one in measure():
        word = "at least" if one.at_least else "at most"
        mark = "ok" if one.ok else "MISSED"
        print(f"{one.name}: {one.value:.4g} {one.unit} ({word} {one.limit:g}: {mark})")
        late += not one.ok
        if path:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(one)) + "\n")
    return 1 if late else 0


def _best(
    call: Callable[[], object], times: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    found = []
    for _ in range(times):
        start = clock()
        call()
        found.append(clock() - start)
    return min(found)
