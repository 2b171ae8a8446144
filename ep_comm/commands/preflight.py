"""``python -m ep_comm preflight``: is this machine ready, and if not, what is to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ascendkit.errors import bad_value
from ep_comm.checks import MAX_TOPK
from ep_comm.commands import given, show
from ep_comm.launch import BACKENDS, Pool, RankError, available
from ep_comm.preflight import Finding, connected, installed, memory
from ep_comm.size import buffer_size


def main(c: dict[str, Any]) -> int:
    """Print findings; 1 where one is wrong."""
    given.numbers(c, topk=(0, MAX_TOPK))
    given.nodes(c["scaleup"], c["ranks"])
    if c["timeout"] <= 0:
        raise bad_value("timeout", c["timeout"], "seconds above 0", 1.0)
    size = buffer_size(
        c["tokens"], c["hidden"], c["topk"], scaleup_ranks=c["ranks"]
    ).num_bytes  # fmt: skip
    found = [*installed(), *memory(size, c["ranks"]), *_together(c)]
    if c["output"] == "json":
        show.lines({"record": "ep_comm_preflight", **asdict(f)} for f in found)
    else:
        show.table("preflight", ("what", "state", "found", "to do"),
                   [(f.what, f.state, f.detail, f.cure) for f in found])  # fmt: skip
    return int(any(f.state == "wrong" for f in found))


def _together(c: dict[str, Any]) -> list[Finding]:
    name = c["backend"]
    if name not in BACKENDS:
        return _launched(c)
    reason = available(name)
    if reason:
        return [Finding(f"{name} ranks", "wrong", reason, "install it, or another backend")]
    with Pool(name, c["ranks"], c["scaleup"] or None) as pool:
        try:
            got = pool.outcomes(
                "ep_comm.preflight:connected", [(c["timeout"],)] * c["ranks"], 60 + c["timeout"]
            )
        except RuntimeError as e:
            return [Finding(f"{name} ranks", "wrong", str(e)[:300], "see above")]
    for one in got:
        if isinstance(one, RankError):
            return [Finding(f"{name} ranks", "wrong", str(one)[:300], "see above")]
    return [Finding(f"{name}: {what}", *rest) for what, *rest in got[0]]


def _launched(c: dict[str, Any]) -> list[Finding]:
    """Device backends: this process is one rank of a launcher's."""
    import os

    if "RANK" not in os.environ:
        return [
            Finding(c["backend"], "wrong", "no launcher around this command",
                    "torchrun --nproc-per-node N -m ep_comm preflight backend=" + c["backend"])
        ]  # fmt: skip
    import torch
    import torch.distributed as dist

    from ep_comm.transport.torch_dist import DEVICE_OF, TorchGroup

    accel = torch.get_device_module(DEVICE_OF[c["backend"]])
    accel.set_device(int(os.environ.get("LOCAL_RANK", os.environ["RANK"])))
    dist.init_process_group(c["backend"])
    found = connected(TorchGroup(None, c["scaleup"] or None), c["timeout"])
    dist.destroy_process_group()
    return [Finding(f"{c['backend']}: {what}", *rest) for what, *rest in found]
