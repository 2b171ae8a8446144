"""Products on one GPU, alone and in a chain, as JSON lines: rows and points of the budget.

    python results/budget_h200/measure.py OUT.jsonl

Every figure is one call inside a CUDA graph of N calls over N input sets (N x bytes >= 256 MiB),
replayed for at least 15 ms, median of 7.
"""

import json
import sys

import torch

SHAPES = [(2112, 7168), (24576, 1536), (7168, 16384), (4096, 7168), (7168, 2048), (4096, 4096)]
TOKENS = (1, 16, 64, 256, 1024, 4096)
CHAIN = [(2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)]


def sets(nbytes):
    return int(min(max(256 * 2**20 // max(nbytes, 1), 2), 24))


def graph_us(calls):
    """Microseconds of one call of the list ``calls``, in a graph of all of them."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for c in calls:
            c()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for c in calls:
            c()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    reps = max(int(15 / max(begin.elapsed_time(end), 1e-3)), 1)
    times = []
    for _ in range(7):
        begin.record()
        for _ in range(reps):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / reps / len(calls))
    return sorted(times)


def product(m, n, k, fp8):
    """A function that multiplies fresh operands: BF16, or FP8 with one scale a tensor."""
    a = torch.randn(m, k, device="cuda").mul_(0.1).bfloat16()
    b = torch.randn(n, k, device="cuda").mul_(0.1).bfloat16()
    if not fp8:
        return lambda: torch.mm(a, b.t())
    one = torch.ones((), device="cuda")
    qa, qb = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
    return lambda: torch._scaled_mm(qa, qb, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def main(path):
    name = torch.cuda.get_device_name()
    with open(path, "w") as out:

        def write(**row):
            out.write(json.dumps({"device": name, "torch": torch.__version__, **row}) + "\n")
            out.flush()

        for fp8 in (False, True):
            kind = "fp8" if fp8 else "bf16"
            for n, k in SHAPES:
                for m in TOKENS:
                    count = sets((m * k + n * k) * (1 if fp8 else 2) + m * n * 2)
                    t = graph_us([product(m, n, k, fp8) for _ in range(count)])
                    write(what="product", kind=kind, m=m, n=n, k=k, us=t)
            for m in TOKENS:
                layers = 3
                calls = [product(m, n, k, fp8) for _ in range(layers) for n, k in CHAIN]
                t = [v * len(CHAIN) for v in graph_us(calls)]
                write(what="chain", kind=kind, m=m, shapes=CHAIN, us=t)
        small = [torch.zeros(1, device="cuda") for _ in range(64)]
        write(what="floor", us=graph_us([lambda x=x: x.fill_(1.0) for x in small]))


if __name__ == "__main__":
    main(sys.argv[1])
