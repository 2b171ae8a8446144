"""``python -m topk.radix_select.modelled``: modelled time of the Ascend program, from a trace.

Nothing here is measured. The emulator runs rows of standard normal values, one a vector core, and
records every instruction; a max-plus pass over the records of a core (pipes in order, flags as the
program sets and waits for them) turns counts and bytes into cycles with :data:`MODEL`. The share is
that of the rate of global memory which 64 cores reach that each take a row.

Not modelled: the scalar core, start and drain of vector functions, result latencies and dual issue
(which work in opposite directions), UB bank conflicts, L2, contention for memory below its ceiling.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import Any

from topk.radix_select import ascend, ascend_program

DEVICE = "ascend_950pr"
MODEL = {
    "register_cycles": 64 / 51,
    "indexed_cycles": 2 * 64 / 51,
    "load_store_cycles": 1.0,
    "gm_to_ub_bytes_per_cycle": 100 / 2,
    "gm_to_ub_latency": 90,
    "ub_to_gm_bytes_per_cycle": 115 / 2,
    "ub_to_gm_latency": 180,
}
"""Cycles an instruction and bytes a cycle of one vector core: the latency table of TileLang 0.1.15
(src/ascend/transform/estimate_latency.h: 51 of 64 lanes a cycle, 256 bytes a cycle to and from UB,
copies shared by two cores); gather and scatter take twice a register instruction: assumed."""
INDEXED = ("asc_gather", "asc_scatter")
FREE = ("simd_vf", "simd_vf.end", "raw", "asc_init", "asc_mem_bar")
ROWS = 4
LENGTHS = tuple(1 << n for n in range(17, 22))
TOPKS = (512, 1024, 4096)


def cycles(records: Iterable[Any]) -> tuple[float, Counter[str]]:
    """When the last pipe of a core is done, and the cycles that pipes were busy."""
    free: dict[str, float] = defaultdict(float)
    done: dict[str, float] = defaultdict(float)
    flags: dict[tuple[str, str, int], deque[float]] = defaultdict(deque)
    busy: Counter[str] = Counter()
    for r in records:
        if r.name in FREE:
            continue
        if r.name == "asc_sync_notify":
            flags[r.pipe, _pipe(r.arguments[0]), r.arguments[1]].append(done[r.pipe])
            continue
        if r.name == "asc_sync_wait":
            set_at = flags[_pipe(r.arguments[0]), r.pipe, r.arguments[1]].popleft()
            free[r.pipe] = max(free[r.pipe], set_at)
            done[r.pipe] = max(done[r.pipe], free[r.pipe])
            continue
        if r.name in ("asc_sync_pipe", "asc_sync"):
            last = max(done.values(), default=0.0) if r.name == "asc_sync" else done[r.pipe]
            free["S"] = max(free["S"], last)
            continue
        taken, latency = cost_of(r)
        free[r.pipe] = max(free[r.pipe], free["S"]) + taken
        done[r.pipe] = free[r.pipe] + latency
        busy[r.pipe] += taken
    return max(done.values(), default=0.0), busy


def cost_of(r: Any) -> tuple[float, float]:
    """Cycles an instruction holds its pipe, and cycles until its result is there."""
    moved = sum(a.rows * a.row_bytes for a in r.accesses if a.space == "GM")
    if r.name == "asc_copy_gm2ub_align":
        return moved / MODEL["gm_to_ub_bytes_per_cycle"], MODEL["gm_to_ub_latency"]
    if r.name == "asc_copy_ub2gm_align":
        return moved / MODEL["ub_to_gm_bytes_per_cycle"], MODEL["ub_to_gm_latency"]
    if r.pipe != "V":
        raise ValueError(f"no model of {r.name} on pipe {r.pipe}")
    if r.name in INDEXED:
        return MODEL["indexed_cycles"], 0.0
    if r.accesses:
        return MODEL["load_store_cycles"], 0.0
    return MODEL["register_cycles"], 0.0


def traced(row_len: int, topk: int, seed: int, rows: int = ROWS) -> list[list[Any]]:
    """The records of ``rows`` bf16 rows, int32 indices without order, by vector core."""
    import torch

    import ascendkit
    from ascendkit.emulator import records

    g = torch.Generator().manual_seed(seed)
    source = torch.randn(rows, row_len, generator=g).bfloat16().view(torch.uint16)
    out = [torch.empty((rows, topk), dtype=torch.int32) for _ in range(2)]
    limits = (ascend_program.limit(topk), ascend_program.INF["bfloat16"])
    with ascendkit.use("emulator"):
        program = ascend.kernel("uint16", 64, True)
        ranges = ascend._ranges(source, None, None, 1)
        draws = ascend._draws("cpu", ascend._most_pages(source))
        order = ascend_program.ORDER_NONE
        program(
            source, ranges, draws, *out, 1, order, *limits, ascend.MISSING, 0, trace=2, check=False
        )  # fmt: skip
    found: dict[int, list[Any]] = defaultdict(list)
    for r in records.read():
        if r.block < rows:
            found[r.block].append(r)
    return list(found.values())


def model(row_len: int, topk: int, seed: int) -> dict[str, Any]:
    """One record: a batch of as many rows as there are vector cores."""
    from ascendkit.bench.environment import commit
    from ascendkit.hardware import device

    chip = device(DEVICE)
    cores, clock = int(chip.get("cores_aiv")), float(chip.get("clock_ghz")) * 1e9
    ceiling = chip.bytes_per_s("hbm")
    if ceiling is None:
        raise ValueError(f"{DEVICE}: no rate of global memory")
    by_core = traced(row_len, topk, seed)
    times = [cycles(records) for records in by_core]
    moved = 2 * row_len + 8 * topk
    slowest = max(t for t, _ in times)
    seconds = max(slowest / clock, cores * moved / ceiling)
    counts = Counter(r.pipe for r in by_core[0] if r.name not in FREE and "sync" not in r.name)
    return {
        "record": "topk_modelled", "origin": "modelled", "device": DEVICE, "dtype": "bfloat16",
        "rows": cores, "row_len": row_len, "topk": topk, "sorted": False, "seed": seed,
        "rows_traced": len(times), "cycles": [round(t) for t, _ in times],
        "vector_cycles": round(times[0][1]["V"]), "load_cycles": round(times[0][1]["MTE2"]),
        "instructions": dict(counts), "row_bytes": moved, "us": round(seconds * 1e6, 2),
        "gb_per_s": round(cores * moved / seconds / 1e9, 1),
        "share_of_gm": round(cores * moved / seconds / ceiling, 3), "gm_tb_per_s": ceiling / 1e12,
        "model": {k: round(v, 4) for k, v in MODEL.items()},
        "command": "python -m topk.radix_select.modelled", "commit": commit(),
    }  # fmt: skip


def _pipe(number: int) -> str:
    from ascendkit.emulator.records import PIPES

    return PIPES[number]


def main(argv: list[str]) -> None:
    """Print one record a length and k; ``LENGTH K`` for one of them."""
    wanted = [(int(argv[0]), int(argv[1]))] if argv else [(n, k) for n in LENGTHS for k in TOPKS]
    for row_len, topk in wanted:
        print(json.dumps(model(row_len, topk, seed=int(math.log2(row_len)))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
