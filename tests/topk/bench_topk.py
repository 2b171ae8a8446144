"""topk beside torch.topk and other peers: same inputs, one run.

``python -m tests.topk.bench_topk results/topk_h200.jsonl [--seconds 240] [--peers FILE]`` on a
machine with a GPU. One line a shape. ``FILE`` is Python that defines ``peers(rows, row_len, topk,
dtype, sorted)``: names of records to functions of (x, values, indices), where they take the shape.
"""

from __future__ import annotations

import argparse
import json
import math
import runpy
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import topk
from ascendkit.bench.environment import commit, device_name
from ascendkit.bench.timing import do_bench
from tests.topk.gpu_warm import warm
from topk.radix_select import cuda

Shape = tuple[int, int, int, str, bool]
Call = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]
METHOD = (
    "CUDA graph of one call per input and output set, 2 to 48 sets (1 GiB or more of input where 48"
    " sets reach it), replayed >= 2 ms, median of 3; standard normal values"
)
ROWS = (6, 256, 512, 768, 4096)
LENGTHS = tuple(1 << n for n in (8, 10, 12, 14, 16, 17, 18, 19, 20))


def shapes() -> Iterator[Shape]:
    """Few rows, the peers' own shapes, then the rest of the performance grid."""
    grid = [
        (rows, row_len, min(k, row_len), "bfloat16", False)
        for rows in ROWS
        for k in (512, 1024)
        for row_len in LENGTHS
        if k == 512 or row_len > 512
    ]
    sampling = [(rows, 129280, 512, "float32", True) for rows in ROWS]
    yield from (s for s in grid if s[0] == ROWS[0])
    for row_len in (4096, 65536, 262144, 1048576, 1400000):
        yield 1, row_len, 1024, "bfloat16", False
    yield 8, 262144, 1024, "bfloat16", False
    yield from ((1, 129280, 512, "float32", True), *sampling)
    for rows, row_len in ((4096, 8192), (4096, 32768), (1024, 65536), (128, 65536)):
        yield rows, row_len, 2048, "float32", False
    yield from (s for s in grid if s[0] != ROWS[0])


def tag(rows: int, row_len: int, k: int, dtype: str) -> str:
    """The kernel and its layout in a few letters."""
    made = cuda.plan(rows, row_len, k, 4 if dtype == "float32" else 2)
    kind = "resident" if hasattr(made, "elements") else "stream"
    return f"{kind}-T{made.threads}C{made.cluster}R{made.residents}"


def calls(
    call: Call, xs: list[torch.Tensor], k: int, index: torch.dtype, most: int = 48
) -> list[Callable[[], Any]]:
    """One closure a set of inputs and outputs."""
    made = []
    for x in xs[:most]:
        values = torch.empty(len(x), k, dtype=x.dtype, device="cuda")
        indices = torch.empty(len(x), k, dtype=index, device="cuda")
        made.append(lambda x=x, v=values, i=indices: call(x, v, i))
    return made


def us(made: list[Callable[[], Any]]) -> float:
    """Median microseconds of a call."""
    return round(do_bench(made, "cuda", min_ms=2, repeats=3).p50, 2)


def measure(shape: Shape, pool: torch.Tensor, peers: Any) -> dict[str, Any]:
    """All of a shape's times."""
    rows, row_len, k, dtype, sorted_ = shape
    size = rows * row_len * pool.element_size()
    count = max(2, min(48, (1 << 30) // size + 1))
    xs = [pool[i * rows * row_len :][: rows * row_len].view(rows, row_len) for i in range(count)]

    def ours(x: torch.Tensor, v: torch.Tensor, i: torch.Tensor) -> None:
        cuda.run(
            x, k, sorted_, None, None, i.dtype, False, None, None, None, 2**31 - 1, -torch.inf,
            sorted_, None, 1, out=(v if sorted_ else None, i),
        )  # fmt: skip

    x, index = xs[0], torch.int32
    values, indices = topk.topk(x, k, sorted=True, indices_type=index)
    want = torch.topk(x, k).values
    torch.testing.assert_close(values, want, rtol=0, atol=0)
    del values, indices, want
    record: dict[str, Any] = {
        "rows": rows, "row_len": row_len, "topk": k, "dtype": dtype, "sorted": sorted_,
        "input_bytes": size, "l2_state": "cold" if size * count >= 1 << 29 else "warm or mixed",
        "ours_us": {tag(*shape[:4]): us(calls(ours, xs, k, index))},
        "read_us": us([lambda x=x: x.sum() for x in xs]),
        "torch_topk_us": us(calls(
            lambda x, v, i: torch.topk(x, k, sorted=sorted_, out=(v, i)), xs, k, torch.int64,
            48 if size < 1 << 24 else 4,
        )),
    }  # fmt: skip
    for name, call in peers(rows, row_len, k, dtype, sorted_).items():
        record[f"{name}_us"] = us(calls(call, xs, k, index, 48 if size < 1 << 24 else 4))
    record["moved_bytes"] = size + rows * k * (4 + (pool.element_size() if sorted_ else 0))
    return record


def main() -> None:
    """Measure until the time is up; geometric means at the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--peers")
    options = parser.parse_args()
    import tilelang

    start = time.monotonic()
    todo = list(shapes())
    count = warm(s[:4] for s in todo)
    print(f"{count} kernels compiled in {time.monotonic() - start:.0f} s", flush=True)
    peers = runpy.run_path(options.peers)["peers"] if options.peers else lambda *a: {}
    machine = {
        "device": device_name("cuda"), "torch": torch.__version__,
        "tilelang": tilelang.__version__, "cuda": torch.version.cuda, "method": METHOD,
        "commit": commit(), "command": "python -m tests.topk.bench_topk",
    }  # fmt: skip
    ratios: dict[str, list[float]] = {}
    pools: dict[str, torch.Tensor] = {}
    for shape in todo:
        dtype = shape[3]
        if time.monotonic() - start > options.seconds:
            print("time is up before", shape)
            break
        if dtype not in pools:
            most = max(2 * s[0] * s[1] for s in todo if s[3] == dtype)
            pools[dtype] = torch.empty(most + (1 << 30), dtype=getattr(torch, dtype), device="cuda")
            for part in pools[dtype].split(1 << 28):
                part.normal_()
        record = {"record": "topk_time", **machine, **measure(shape, pools[dtype], peers)}
        with options.out.open("a") as f:
            f.write(json.dumps(record) + "\n")
        best = min(record["ours_us"].values())
        others = {n: t for n, t in record.items() if n.endswith("_us") and n != "ours_us"}
        for name, t in others.items():
            ratios.setdefault(name, []).append(t / best)
        print(
            *shape, record["ours_us"], others, f"{others['torch_topk_us'] / best:.1f}x", flush=True
        )
    for name, all_ in ratios.items():
        mean = math.exp(sum(map(math.log, all_)) / len(all_))
        print(f"{name}: geometric mean over {len(all_)} shapes {mean:.2f} of ours")
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
