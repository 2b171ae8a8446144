"""A call as a vector of ideal seconds, one a resource: the coordinates curves are indexed by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ascendkit.budget.call import Call
from ascendkit.budget.curves.tiles import cores, padding
from ascendkit.budget.roofline import roofline, runs_as
from ascendkit.hardware import Device

AXES = ("cube", "vector", "hbm", "l2", "scaleup", "scaleout")

FAMILIES = {
    "matrix": ("gemm_mad.gemm", "gemm_mad.grouped"),
    "attention": ("sparse_attn.prefill", "sparse_attn.decode", "sparse_attn.mla"),
    "link": (
        "ep_comm.dispatch", "ep_comm.combine", "ep_comm.all_reduce", "ep_comm.all_gather",
        "ep_comm.reduce_scatter", "ep_comm.send_recv",
    ),
    "stream": (
        "tilekernels.norm", "tilekernels.swiglu", "tilekernels.per_token_cast",
        "tilekernels.rope", "tilekernels.embedding", "tilekernels.mhc.pre", "tilekernels.mhc.post",
        "tilekernels.mhc.expand", "tilekernels.mhc.head", "tilekernels.engram.gate",
        "tilekernels.engram.hash", "tilekernels.engram.gather", "tilekernels.adamw",
        "tilekernels.cross_entropy", "tilekernels.moe_topk_gate", "sparse_attn.compressor",
        "sparse_attn.kv_cache",
    ),
}  # fmt: skip
"""Ops whose kernels are alike enough that one may stand in for another, marked transferred."""

SPLIT = {"topk.radix_select": "rows"}
"""Ops that share one row among cores where there are fewer rows than cores: another kernel. The
kernel of whole rows takes such calls too, so none is slower than as many rows as cores."""
SPLIT_ROWS = "split rows"
CORES = 128
"""Cores of a device whose number is not known, for :data:`SPLIT`."""


@dataclass(frozen=True)
class Key:
    """What makes kernels one curve: the op, the pass, and the rate class of its products."""

    op: str
    variant: str = ""
    dtype: str = ""

    @property
    def family(self) -> str:
        """The family of stand-ins; the op itself where it has none."""
        return next((f for f, ops in FAMILIES.items() if self.op in ops), self.op)


def whole(device: Device) -> int:
    """Rows from which every core has whole ones."""
    return cores(device) or CORES


def split_or_whole(one: Key, other: Key) -> bool:
    """Whether two keys are one op with its rows split among cores, or not, in one pass."""
    kinds = ("", SPLIT_ROWS)
    return one.op == other.op and one.op in SPLIT and {one.variant, other.variant} <= set(kinds)


@lru_cache(maxsize=65536)
def key(op: str, params: tuple[tuple[str, Any], ...], device: Device) -> Key:
    """The curve a call belongs to on ``device``: a dtype runs as the class the device has."""
    got = dict(params)
    variant = ""
    if got.get("backward"):
        variant = "backward"
    elif got.get("wgrad") or got.get("accumulate"):
        variant = "wgrad"
    elif op in SPLIT and got[SPLIT[op]] < whole(device):
        variant = SPLIT_ROWS
    flops = Call("", op, got).cost.flops()
    cube = {d: v for (u, d), v in flops.items() if u == "cube"}
    dtype = max(cube, key=lambda d: cube[d]) if cube else ""
    return Key(op, variant, runs_as(device, dtype) if dtype else "")


def key_of(call: Call, device: Device) -> Key:
    """:func:`key` of a call."""
    return key(call.op, call.key[1:], device)


def ideal(call: Call, device: Device) -> tuple[float, ...]:
    """Seconds one call needs of every axis at peak, matrix work padded to tiles and waves."""
    return _ideal(call.op, call.key[1:], device)


@lru_cache(maxsize=65536)
def _ideal(op: str, params: tuple[tuple[str, Any], ...], device: Device) -> tuple[float, ...]:
    call = Call("", op, dict(params))
    got = roofline(call.cost, device).by_resource
    times = [got.get(axis) or 0.0 for axis in AXES]
    times[0] *= _waste(call, device)
    return tuple(times)


def _waste(call: Call, device: Device) -> float:
    q = call.params
    if call.op == "gemm_mad.gemm":
        return padding(device, q["m"], q["n"], q.get("batch", 1))
    if call.op == "gemm_mad.grouped" and not q.get("wgrad"):
        touched = max(q.get("touched") or q["experts"], 1e-9)
        return padding(device, q["rows"] / touched, q["n"], touched)
    return 1.0
