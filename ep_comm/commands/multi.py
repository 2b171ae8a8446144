"""``python -m ep_comm multi``: check, time and fit on all devices of a host, under torchrun."""

from __future__ import annotations

import itertools
import os
from typing import Any

from ascendkit import cli
from ascendkit.bench.environment import commit, device_name, environment
from ascendkit.errors import bad_value
from ep_comm.commands import show
from ep_comm.commands.bench import append
from ep_comm.measure import Shape
from ep_comm.multi import contention, faults, link_constants, timings
from ep_comm.transport.torch_dist import DEVICE_OF


def main(c: dict[str, Any]) -> int:
    """Run as one rank; rank 0 reports. 1 where a result is not bit-equal to the reference."""
    import torch
    import torch.distributed as dist

    from ep_comm.transport.torch_dist import TorchGroup

    if "RANK" not in os.environ:
        raise bad_value("multi", "one process", "torchrun --nproc-per-node N -m ep_comm multi")
    if c["backend"] == "hccl":
        import torch_npu  # noqa: F401
    kind = DEVICE_OF[c["backend"]]
    if kind != "cpu":
        accel = torch.get_device_module(kind)
        accel.set_device(int(os.environ.get("LOCAL_RANK", os.environ["RANK"])))
    dist.init_process_group(c["backend"])
    group = TorchGroup(None, c["scaleup"] or None, symmetric=c["symmetric"])
    shapes = [
        Shape(t, h, k, c["experts"], fp8, "uniform", c["repeats"], c["seed"])
        for t, h, k, fp8 in itertools.product(c["tokens"], c["hidden"], c["topk"], (True, False))
    ]
    found = {
        "faults": faults(group, kind, c["seed"]),
        "timings": timings(group, shapes),
        "contention": contention(group, shapes[1], c["intermediate"]),
    }
    every: list[Any] = [None] * group.size
    dist.all_gather_object(every, found)
    code = _report(c, every, kind) if group.rank == 0 else 0
    dist.destroy_process_group()
    return code


def _report(c: dict[str, Any], every: list[dict[str, Any]], kind: str) -> int:
    about = {
        "backend": c["backend"], "symmetric": c["symmetric"], "ranks": len(every),
        "device": device_name(kind), "commit": commit(), "environment": environment(kind),
    }  # fmt: skip
    wrong = [f for one in every for f in one["faults"]]
    records = [{"record": "ep_comm_multi_check", **about, "faults": wrong}]
    slowest = [max(s, key=lambda r: r["us"]) for s in zip(*(one["timings"] for one in every))]
    records += [{"record": "ep_comm_multi_time", **about, **r} for r in slowest]
    beside = [max(s, key=lambda r: r["us"]) for s in zip(*(one["contention"] for one in every))]
    records += [{"record": "ep_comm_multi_contention", **about, **r} for r in beside]
    fits = []
    for what in ("dispatch", "combine", "all_to_all"):
        points = [(r["wire_bytes"], r["us"]) for r in slowest if r["what"] == what]
        if len(points) > 1 and all(b for b, _ in points):
            rate, start, errors = link_constants(points)
            fits.append(
                {"record": "ep_comm_multi_fit", **about, "what": what, "wire_gbs": rate,
                 "start_us": start, "errors": errors}
            )  # fmt: skip
    records += fits
    if c["record"]:
        append(c["record"], records)
    if c["output"] == "json":
        show.lines(records)
    else:
        _tables(wrong, slowest, beside, fits)
    return int(bool(wrong))


def _tables(wrong: Any, slowest: Any, beside: Any, fits: Any) -> None:
    out = cli.console()
    out.print("all cases bit-equal to the reference" if not wrong else "\n".join(wrong[:5]))
    show.table(
        "measured, slowest rank",
        ("what", "tokens", "hidden", "k", "fp8", "us", "logical GB/s", "wire GB/s"),
        [(r["what"], r["shape"]["tokens"], r["shape"]["hidden"], r["shape"]["num_topk"],
          r["shape"]["fp8"], f"{r['us']:.1f}", f"{r['logical_gbs']:.1f}", f"{r['wire_gbs']:.1f}")
         for r in slowest],
    )  # fmt: skip
    show.table("contention", ("what", "us"), [(r["what"], f"{r['us']:.1f}") for r in beside])
    for f in fits:
        worst = max(map(abs, f["errors"]))
        out.print(f"{f['what']}: fitted {f['wire_gbs']:.1f} GB/s on the wire, start "
                  f"{f['start_us']:.1f} us; worst error {worst:.1%}")  # fmt: skip
