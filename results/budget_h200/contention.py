"""What a transfer keeps of its rate beside products, on two GPUs of one host.

python results/budget_h200/contention.py OUT.jsonl
"""

import json
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

MIB = (16, 64, 256)
REPS = 12


def timed(fn, *streams):
    """Milliseconds from one start to the end of every stream, median of 5."""
    got = []
    for _ in range(6):
        dist.barrier()
        torch.cuda.synchronize()
        begin = torch.cuda.Event(enable_timing=True)
        begin.record()
        for s in streams:
            s.wait_event(begin)
        fn()
        ends = []
        for s in streams:
            e = torch.cuda.Event(enable_timing=True)
            e.record(s)
            ends.append(e)
        torch.cuda.synchronize()
        got.append([begin.elapsed_time(e) for e in ends])
    return [sorted(v)[len(got) // 2] for v in zip(*got[1:])]


def worker(rank, world, path):
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", init_method="tcp://127.0.0.1:29512", rank=rank, world_size=world
    )
    compute, move = torch.cuda.Stream(), torch.cuda.Stream()
    a = torch.randn(4096, 7168, device="cuda").bfloat16()
    b = torch.randn(4096, 7168, device="cuda").bfloat16()
    rows = []
    for mib in MIB:
        x = torch.zeros(mib * 2**19, device="cuda", dtype=torch.bfloat16)
        y = torch.empty_like(x)

        def transfer(x=x, y=y):
            with torch.cuda.stream(move):
                for _ in range(REPS):
                    dist.all_to_all_single(y, x)

        transfer()
        [alone] = timed(transfer, move)

        def products(n):
            with torch.cuda.stream(compute):
                for _ in range(n):
                    torch.mm(a, b.t())

        products(3)
        [ten] = timed(lambda: products(10), compute)
        # Enough products to cover the transfer even if it takes twice as long.
        n = max(int(2.2 * alone / (ten / 10)), 4)
        [compute_alone] = timed(lambda n=n: products(n), compute)

        def both(n=n):
            products(n)
            transfer()

        got = timed(both, compute, move)
        rows.append(
            dict(mib=mib, alone_ms=alone, beside_ms=got[1], kept=alone / got[1], products=n,
                 compute_alone_ms=compute_alone, compute_beside_ms=got[0])
        )  # fmt: skip
    if rank == 0:
        with open(path, "w") as out:
            for r in rows:
                line = {"device": torch.cuda.get_device_name(), "gpus": world, **r}
                out.write(json.dumps(line) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2, sys.argv[1]), nprocs=2)
