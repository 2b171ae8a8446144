"""Ops of gates and routing beside what upstream has of them: same inputs, one run.

``python -m tests.tilekernels.bench_routing OUT.jsonl [--older PACKAGE] [op ...]`` on a machine with
a GPU and ``pip install -e '.[cuda,peers]'``. PACKAGE is the name under which the repository of
TileKernels at 36d9e45, which has the ops that the package dropped, can be imported; without it
those have no peer. One line a case and function: median microseconds of a call inside a CUDA graph
that walks over distinct input and output sets.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ascendkit.bench import Ceilings, do_bench, num_sets
from ascendkit.bench.case import cost_params, traffic
from ascendkit.bench.environment import commit, device_name, environment, l2_state
from ascendkit.check.correctness import public
from ascendkit.op import Case, Op
from ascendkit.registry import op
from ascendkit.schema import outputs
from ascendkit.testing.memory import copied

COMMAND = "python -m tests.tilekernels.bench_routing OUT.jsonl --older PACKAGE"
Function = Callable[..., Any]
ROWS = ("expand_to_fused", "expand_to_fused_with_sf", "reduce_fused")
"""Ops whose rows are drawn on the device: they are large."""


def released(name: str) -> Function | None:
    """A function of tile-kernels 2.1.0 over the arguments of our schema."""
    from tile_kernels import moe

    return {
        "normalize_weight": lambda w: moe.normalize_weight(w),
        "moe_topk_gate_backward": lambda scores, idx, w, g, *rest: moe.moe_topk_gate_backward(
            scores, idx, w, g, *rest
        ),
    }.get(name)


def dropped(name: str, package: str) -> Function | None:
    """A function of the older repository over the arguments of our schema."""
    moe = importlib.import_module(f"{package}.moe")

    def reduce_fused(x: Any, x_sf: Any, weights: Any, places: Any, fp8: str, sf: Any) -> Any:
        return moe.reduce_fused(x if x_sf is None else (x, x_sf), weights, places, fp8, sf)

    def with_sf(x: Any, sf: Any, *rest: Any) -> Any:
        return moe.expand_to_fused_with_sf((x, sf), *rest)

    special = {"reduce_fused": reduce_fused, "expand_to_fused_with_sf": with_sf}
    return special.get(name) or getattr(moe, name, None)


def drawn(what: Op, case: Case) -> tuple[Any, ...]:
    """Inputs of a case; long rows of bytes on the device, their maps as the case draws them."""
    seed = 20261130
    if what.stem not in ROWS:
        return copied(what.inputs(case, seed), "cuda")
    small = {"row_bytes": 128, "dtype": "uint8"} if what.stem != "reduce_fused" else {}
    p = dict(case.params)
    short = replace(case, params={**p, **small, "hidden": 128})
    x, *rest = copied(what.inputs(short, seed), "cuda")
    dtype = getattr(torch, p["dtype"])
    rows = torch.randint(0, 1 << 14, (len(x), p["hidden"]), dtype=torch.int16, device="cuda")
    # Small positive numbers as bits of a half; NaNs would slow nothing, but differ from themselves.
    x = (rows & 63).to(torch.uint8).view(dtype) if dtype.itemsize == 1 else rows.view(dtype)
    if what.stem == "expand_to_fused_with_sf":
        words = -(-p["hidden"] // (512 if p["packed"] else 128))
        rest[0] = torch.ones(len(x), words, dtype=rest[0].dtype, device="cuda")
    return (x, *rest)


def rows(names: list[str], older: str, ceilings: Ceilings) -> Iterator[dict[str, Any]]:
    """Time ours and the peer on every case meant for it."""
    for what in (op(f"tilekernels.{n}") for n in names):
        for case in (c for c in what.cases("full") if c.bench):
            cost, args, module = (
                what.cost(**cost_params(what, case)),
                drawn(what, case),
                what.load(),
            )
            read, write = traffic(cost, "read"), traffic(cost, "write")
            sets = [copied(args) for _ in range(num_sets(read + write))]
            kept = [module.allocate(*a) if hasattr(module, "allocate") else None for a in sets]
            mine, peer = public(what, case), released(what.stem)
            peer_name = "tile_kernels 2.1.0"
            if peer is None and older:
                peer, peer_name = dropped(what.stem, older), "TileKernels 36d9e45"
            calls: dict[str, list[Callable[[], Any]]] = {
                "ascendkit": [_ours(mine, a, o) for a, o in zip(sets, kept)],
                peer_name: [_bound(peer, a) for a in sets] if peer else [],
            }
            equal = None
            if peer and kept[0] is not None:
                calls["ascendkit"][0]()
                equal = _equal(outputs(kept[0]), calls[peer_name][0]())
            copy = ceilings.best((read + write) / 2, (read + write) / 2)
            fastest = ceilings.best(read, write)
            for name, each in calls.items():
                if not each:
                    continue
                timing = do_bench(each, "cuda", min_ms=8, repeats=5)
                yield {
                    # Not a record of the op: those come from ``ascendkit.check loop=bandwidth``.
                    "record": "comparison", "of": what.name, "case": case.name, "function": name,
                    "us": timing.p50, "p20": timing.p20, "p80": timing.p80,
                    "method": timing.method, "bytes": read + write, "copy_us": copy.us,
                    "ceiling_us": fastest.us, "ceiling": fastest.kind, "equal_to_peer": equal,
                    "l2_state": l2_state("cuda", len(sets) * (read + write)),
                    "device": device_name("cuda"), "commit": commit(),
                    "environment": environment("cuda"),
                    "command": " ".join([COMMAND, *names]),
                }  # fmt: skip
            del sets, kept, calls


def _ours(function: Function, args: tuple[Any, ...], out: Any) -> Callable[[], Any]:
    # The public function of an op without ``out`` allocates, as its peer does.
    if out is None or "out" not in inspect.signature(function).parameters:
        return lambda: function(*args)
    return lambda: function(*args, out=out)


def _bound(function: Function, args: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: function(*args)


def _equal(mine: Any, theirs: Any) -> bool:
    theirs = theirs if isinstance(theirs, (tuple, list)) else (theirs,)
    pairs = [(a, b) for a, b in zip(mine, theirs) if isinstance(b, torch.Tensor)]
    # Narrow floats have no equality on a device.
    plain = ((a.view(torch.uint8), b.view(torch.uint8)) if a.itemsize == 1 else (a, b)
             for a, b in pairs)  # fmt: skip
    return all(torch.equal(a, b) for a, b in plain)


def main() -> int:
    """Write the rows and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--older", default="")
    parser.add_argument("ops", nargs="+")
    given = parser.parse_args()
    with given.out.open("x", encoding="utf-8") as file:
        for row in rows(given.ops, given.older, Ceilings("cuda")):
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(
                f"{row['of']:45} {row['case']:45} {row['function']:20} {row['us']:8.2f}"
                f" copy {row['copy_us']:.2f} {row['ceiling']} {row['ceiling_us']:.2f}"
                f" equal {row['equal_to_peer']}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
