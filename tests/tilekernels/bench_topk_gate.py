"""topk_gate beside torch.topk and tile-kernels' topk_gate: same inputs, equal outputs, one run.

``python -m tests.tilekernels.bench_topk_gate results/topk_gate_h200.jsonl`` on a machine with a GPU
and ``pip install -e '.[cuda,peers]'``. One line a shape and function: median microseconds of a
call inside a CUDA graph that walks over distinct input and output sets.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from ascendkit.bench import Ceilings, do_bench, num_sets
from ascendkit.bench.environment import commit, device_name, environment, l2_state
from ascendkit.registry import op
from tilekernels.topk_gate import cases, cuda, topk_gate

SHAPES = [
    (tokens, *cases.MODELS[name])
    for name in ("v3", "v4_pro", "small")
    for tokens in (*cases.BENCH_TOKENS, 65536)
]
Call = Callable[[torch.Tensor, torch.Tensor], object]
OTHER_PLANS = ({"warps": 1}, {"warps": 2}, {"lanes": 16}, {"lanes": 32})


def functions(tokens: int, experts: int, topk: int) -> Iterator[tuple[str, Call]]:
    """Who is timed: name and a function of (scores, out)."""
    yield "ascendkit", lambda scores, out: topk_gate(scores, topk, out=out)
    chosen = cuda.plan(tokens, experts, topk)
    for change in OTHER_PLANS:
        # Not what the public function runs: what choosing the plan was based on.
        if replace(chosen, **change) != chosen:
            yield f"ascendkit plan {change}", cuda.kernel(experts, topk, replace(chosen, **change))
    yield "torch.topk", lambda scores, out: torch.topk(scores, topk, dim=-1)
    from tile_kernels.moe.topk_gate_cuda import get_topk_gate_kernel_cuda

    # The kernel alone: its public function allocates, and a graph keeps every allocation.
    yield "tile_kernels 2.1.0", get_topk_gate_kernel_cuda(experts, topk)


def rows(ceilings: Ceilings) -> Iterator[dict[str, Any]]:
    """Time every function on every shape."""
    for tokens, experts, topk in SHAPES:
        size = op("tilekernels.topk_gate").cost(
            num_tokens=tokens, num_experts=experts, num_topk=topk
        )
        least = size.minimum_bytes()
        sets = [
            (
                torch.randn(tokens, experts, device="cuda"),
                torch.empty(tokens, topk, dtype=torch.int64, device="cuda"),
            )
            for _ in range(num_sets(least))
        ]
        scores, out = sets[0]
        want = topk_gate(scores.cpu(), topk, check_values=False)
        ceiling = ceilings.best(4.0 * tokens * experts, 8.0 * tokens * topk)
        for name, call in functions(tokens, experts, topk):
            got = call(scores, out.fill_(-1))
            indices = got.indices if name == "torch.topk" else out
            equal = bool(torch.equal(indices.cpu(), want))
            timing = do_bench([lambda c=call, s=s, o=o: c(s, o) for s, o in sets], "cuda")
            yield {
                # Not a record of the op: those come from ``ascendkit.check loop=bandwidth``.
                "record": "comparison",
                "of": "tilekernels.topk_gate",
                "function": name,
                "params": {"num_tokens": tokens, "num_experts": experts, "num_topk": topk},
                "time_us": {"p20": timing.p20, "p50": timing.p50, "p80": timing.p80},
                "gbs": least / timing.p50 / 1e3,
                "ceiling": {"kind": ceiling.kind, "us": ceiling.us, "gbs": ceiling.gbs},
                "equal_to_reference": equal,
                "plan": asdict(cuda.plan(tokens, experts, topk)) if name == "ascendkit" else None,
                "l2_state": l2_state("cuda", len(sets) * least),
                "method": f"{timing.method}, {len(sets)} sets, {timing.repeats} repeats",
                "device": device_name("cuda"),
                "environment": environment("cuda"),
                "commit": commit(),
                "command": " ".join(["python -m tests.tilekernels.bench_topk_gate", *sys.argv[1:]]),
            }
        del sets


def main(path: Path) -> int:
    """Write the rows and print a table; 1 where an output of a gate differs."""
    wrong = 0
    with path.open("x", encoding="utf-8") as file:
        for row in rows(Ceilings("cuda")):
            file.write(json.dumps(row) + "\n")
            file.flush()
            # torch.topk promises no order of equal scores, and large draws hold some.
            wrong += row["function"] != "torch.topk" and not row["equal_to_reference"]
            print(row["params"], row["function"], f"{row['time_us']['p50']:.2f} us", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
