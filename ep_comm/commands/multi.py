"""``python -m ep_comm multi``: check, time and fit on all devices of a host, under torchrun."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from typing import Any

from ascendkit import cli
from ascendkit.errors import bad_value, unknown
from ep_comm.commands import given, show
from ep_comm.commands.bench import append, place
from ep_comm.commands.origin import origin
from ep_comm.contract import Spec, matrix
from ep_comm.measure import Shape, measure
from ep_comm.model.link import link_constants
from ep_comm.multi import contention, faults, specs
from ep_comm.transport.torch_dist import DEVICE_OF
from ep_comm.waits import host_waits

PATHS = ("rows", "symmetric")


def main(c: dict[str, Any]) -> int:
    """Run as one rank; rank 0 reports. 1 where a result is not bit-equal to the reference."""
    import torch
    import torch.distributed as dist

    if "RANK" not in os.environ:
        raise bad_value("multi", "one process", "torchrun --nproc-per-node N -m ep_comm multi")
    for path in c["paths"]:
        if path not in PATHS:
            raise unknown("path", path, PATHS)
    given.numbers(c)
    given.shapes(c, int(os.environ.get("WORLD_SIZE", "1")))
    if c["record"]:
        place(c["record"])
    if c["backend"] == "hccl":
        import torch_npu  # noqa: F401
    kind = DEVICE_OF[c["backend"]]
    if kind != "cpu":
        accel = torch.get_device_module(kind)
        accel.set_device(int(os.environ.get("LOCAL_RANK", os.environ["RANK"])))
    dist.init_process_group(c["backend"])
    code = Run(c, kind).all()
    if c["record"] and dist.get_rank() == 0:
        print(f"added records to {place(c['record'])}", file=sys.stderr)
    dist.destroy_process_group()
    return code


class Run:
    """The stages on this rank. Every record is written as soon as it is there."""

    def __init__(self, c: dict[str, Any], kind: str) -> None:
        from ep_comm.transport.torch_dist import TorchGroup

        self.c, self.kind, self.wrong = c, kind, 0
        self.groups = {
            path: TorchGroup(None, c["scaleup"] or None, symmetric=path == "symmetric")
            for path in c["paths"]
        }
        self.rank = next(iter(self.groups.values())).rank
        self._size = next(iter(self.groups.values())).size
        self.about = {
            "backend": c["backend"], "ranks": self._size, **origin(kind),
        }  # fmt: skip
        self.times: list[dict[str, Any]] = []

    def all(self) -> int:
        """Most important first."""
        c = self.c
        shapes = [
            Shape(t, h, k, c["experts"], fp8, "uniform", c["repeats"], c["seed"])
            for t, h, k, fp8 in itertools.product(
                c["tokens"], c["hidden"], c["topk"], (False, True)
            )
        ]
        for path in list(self.groups):
            self.check(path, "formats, layouts, skew", list(specs(self._size, c["seed"])), 1e9)
            self.watch(path)
        for shape in shapes:
            for path in list(self.groups):
                self.time(path, shape)
        for path in list(self.groups):
            self.fit(path)
            self.contention(path, shapes[0])
        for path in list(self.groups) if c["matrix"] else ():
            base = Spec(tokens=33, num_experts=8 * self._size, seed=c["seed"])
            self.check(path, "matrix", list(matrix(base)), c["matrix"])
        return int(bool(self.wrong))

    def check(self, path: str, what: str, cases: list[Spec], limit_s: float) -> None:
        """Cases against the reference."""
        every = self._stage(
            path, what, lambda group: faults(group, self.kind, cases, limit_s), (0, [])
        )
        wrong = [f for _, found in every for f in found]
        self.wrong += len(wrong)
        count = every[0][0]
        self._say({"record": "ep_comm_multi_check", "path": path, "what": what, "cases": count,
                   "of": len(cases), "faults": wrong[:20], "num_faults": len(wrong)},
                  f"{path}, {what}: {count} of {len(cases)} cases, "
                  f"{len(wrong) or 'no'} faults {wrong[:3] or ''}")  # fmt: skip

    def watch(self, path: str) -> None:
        """Calls during which the host must not wait for the device."""
        every = self._stage(
            path, "waits", lambda group: host_waits(group, self.kind, self.c["seed"]), (0, [])
        )
        wrong = [f"rank {r}, {f}" for r, (_, found) in enumerate(every) for f in found]
        self.wrong += len(wrong)
        watched = every[0][0] if self.kind != "cpu" else 0
        self._say({"record": "ep_comm_multi_waits", "path": path, "calls": every[0][0],
                   "watched": watched, "faults": wrong},
                  f"{path}, host waits: {watched} calls watched, {len(wrong) or 'no'} faults "
                  f"{wrong[:3] or ''}")  # fmt: skip

    def time(self, path: str, shape: Shape) -> None:
        """Dispatch, combine and all_to_all_single; the slowest rank counts."""
        every = self._stage(path, "time", lambda group: measure(group, shape), [])
        for same in zip(*every):
            r = max(same, key=lambda r: r["us"])
            r = {"path": path, "shape": shape.__dict__, **r}
            r["in_row_us"] = max(s["in_row_us"] for s in same)
            self.times.append(r)
            self._say(
                {"record": "ep_comm_multi_time", **r},
                f"{path:9} {r['what']:10} {shape.tokens:5} x {shape.hidden} k{shape.num_topk} "
                f"{'fp8 ' if shape.fp8 else 'bf16'} {r['us']:8.1f} us, in a row "
                f"{r['in_row_us']:8.1f} us; {r['logical_gbs']:6.1f} GB/s logical, "
                f"{r['wire_gbs']:6.1f} on the wire",
            )

    def fit(self, path: str) -> None:
        """Constants of the link from the calls in a row, with the error of every point."""
        for what in ("dispatch", "cached", "combine", "all_to_all"):
            mine = [r for r in self.times if r["what"] == what and r["path"] == path]
            points = [(r["wire_bytes"], r["in_row_us"]) for r in mine]
            if len(points) < 2 or not all(b for b, _ in points):
                continue
            rate, start, errors = link_constants(points)
            self._say(
                {"record": "ep_comm_multi_fit", "path": path, "what": what, "wire_gbs": rate,
                 "start_us": start, "errors": errors},
                f"{path}, {what}: fitted {rate:.1f} GB/s on the wire, start {start:.1f} us; "
                f"worst error {max(map(abs, errors)):.1%}",
            )  # fmt: skip

    def contention(self, path: str, shape: Shape) -> None:
        """Calls and products, alone and together."""
        every = self._stage(
            path, "contention",
            lambda group: contention(group, shape, self.c["intermediate"]), [],
        )  # fmt: skip
        for same in zip(*every):
            r = max(same, key=lambda r: r["us"])
            self._say({"record": "ep_comm_multi_contention", "path": path,
                       "shape": shape.__dict__, **r},
                      f"{path}, {r['what']}: {r['us']:.1f} us, "
                      f"in a row {r['in_row_us']:.1f} us")  # fmt: skip

    def _stage(self, path: str, what: str, work: Callable[[Any], Any], nothing: Any) -> list[Any]:
        """What every rank found; a path that lost a rank is left out of what follows."""
        import torch.distributed as dist

        mine, error = nothing, ""
        if path in self.groups:
            try:
                mine = work(self.groups[path])
            except Exception as e:
                error = f"rank {self.rank}: {type(e).__name__}: {e}"[:2000]
        every: list[Any] = [None] * self._size
        dist.all_gather_object(every, (mine, error))
        errors = [e for _, e in every if e]
        if errors:
            if any("Peer" in e for e in errors):
                del self.groups[path]
            self.wrong += 1
            self._say({"record": "ep_comm_multi_error", "path": path, "what": what,
                       "errors": errors}, f"{path}, {what}: {errors}")  # fmt: skip
        return [m for m, _ in every]

    def _say(self, record: dict[str, Any], text: str) -> None:
        if self.rank:
            return
        record = {**record, **self.about}
        if self.c["record"]:
            append(self.c["record"], [record])
        if self.c["output"] == "json":
            show.lines([record])
        else:
            cli.console().print(text, highlight=False)
