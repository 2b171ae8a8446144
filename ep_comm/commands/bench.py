"""``python -m ep_comm bench``: time dispatch and combine.

threads, mpi and gloo start their own ranks. nccl and hccl run inside a launcher that sets RANK and
WORLD_SIZE, such as ``torchrun --nproc-per-node 8 -m ep_comm bench backend=nccl``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ascendkit import cli
from ascendkit.errors import bad_value
from ep_comm.commands import given, show
from ep_comm.commands.origin import origin
from ep_comm.launch import BACKENDS, Pool, RankError, available
from ep_comm.measure import Shape, measure
from ep_comm.transport.torch_dist import DEVICE_OF


def main(c: dict[str, Any]) -> int:
    """Run, print, and append records where asked."""
    given.numbers(c)
    started = c["backend"] in BACKENDS
    given.shapes(c, c["ranks"] if started else int(os.environ.get("WORLD_SIZE", "1")))
    if c["record"]:
        place(c["record"])
    shape = Shape(
        c["tokens"], c["hidden"], c["topk"], c["experts"], c["fp8"], c["routing"], c["repeats"],
        c["seed"],
    )  # fmt: skip
    if started:
        reason = available(c["backend"])
        if reason:
            raise ValueError(f"backend {c['backend']}: {reason}")
        with Pool(c["backend"], c["ranks"], c["scaleup"] or None) as pool:
            try:
                per_rank = pool.run("ep_comm.measure:measure", [(shape,)] * c["ranks"], 600.0)
            except RankError as e:
                cli.fail(str(e), 1)
        return _report(c, per_rank, c["ranks"])
    return _launched(c, shape)


def _launched(c: dict[str, Any], shape: Shape) -> int:
    """One rank of a device backend; rank 0 reports."""
    import torch
    import torch.distributed as dist

    from ep_comm.transport.torch_dist import TorchGroup

    if "RANK" not in os.environ:
        raise bad_value(
            "backend",
            c["backend"],
            f"torchrun --nproc-per-node N -m ep_comm bench backend={c['backend']}",
        )
    if c["backend"] == "hccl":
        import torch_npu  # noqa: F401
    kind = DEVICE_OF[c["backend"]]
    accel = torch.get_device_module(kind)
    accel.set_device(int(os.environ.get("LOCAL_RANK", os.environ["RANK"])))
    dist.init_process_group(c["backend"])
    group = TorchGroup(None, c["scaleup"] or None)
    mine = measure(group, shape)
    every: list[Any] = [None] * group.size
    dist.all_gather_object(every, mine)
    code = _report(c, every, group.size) if group.rank == 0 else 0
    dist.destroy_process_group()
    return code


def _report(c: dict[str, Any], per_rank: list[list[dict[str, Any]]], ranks: int) -> int:
    kind = DEVICE_OF.get(c["backend"], "cpu")
    records = []
    for same in zip(*per_rank):
        slowest = max(same, key=lambda r: r["us"])
        records.append(
            {
                "record": "ep_comm_bench", "backend": c["backend"], "ranks": ranks,
                "scaleup_ranks": c["scaleup"] or ranks,
                "link": "none: processes of one host" if kind == "cpu" else "see device",
                "tokens": c["tokens"], "hidden": c["hidden"], "topk": c["topk"],
                "experts": c["experts"], "fp8": c["fp8"], "routing": c["routing"],
                **{k: v for k, v in slowest.items() if k != "rank"},
                "method": f"slowest rank, median of {c['repeats']}, ranks start together",
                **origin(kind),
            }
        )  # fmt: skip
    if c["record"]:
        append(c["record"], records)
        print(f"added {len(records)} records to {place(c['record'])}", file=sys.stderr)
    if c["output"] == "json":
        show.lines(records)
        return 0
    copy = next(r["us"] for r in records if r["what"] == "memcpy")
    show.table(
        f"measured: {c['backend']}, {ranks} ranks, {c['tokens']} tokens x {c['hidden']}, "
        f"top-{c['topk']} of {c['experts']}, {'fp8' if c['fp8'] else 'bf16'}",
        ("what", "us", "logical MB", "logical GB/s", "wire GB/s", "times memcpy"),
        [(r["what"], f"{r['us']:.0f}", f"{r['logical_bytes'] / 1e6:.1f}",
          f"{r['logical_gbs']:.2f}", f"{r['wire_gbs']:.2f}", f"{r['us'] / copy:.2f}")
         for r in records],
    )  # fmt: skip
    if kind == "cpu":
        print("Copies and turns of processes on one host; not the rate of any link.")
    return 0


def place(name: str) -> Path:
    """Where records of that name go; ValueError for a name that is a path."""
    if name != Path(name).name:
        raise bad_value("record", name, "a file name, which goes to results/", Path(name).name)
    return Path("results") / name


def append(name: str, records: list[dict[str, Any]]) -> None:
    """Add records to a file under results/, a line each."""
    import fcntl

    path = place(name)
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.writelines(json.dumps(r) + "\n" for r in records)
