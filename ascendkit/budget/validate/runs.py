"""Published points as runs: our keys for each, or the reason why there is no prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ascendkit.budget.curves.lookup import Stack
from ascendkit.budget.parts import StepTime
from ascendkit.budget.plan import Plan, plan
from ascendkit.budget.steptime import step_time
from ascendkit.data import table
from ascendkit.hardware import Device, device
from ascendkit.model import Model, model
from ascendkit.model.config import with_formats


@dataclass(frozen=True)
class Point:
    """One published figure and how it is run here.

    Args:
        quantity: what is compared (a key of ``quantities``).
        run: keys of the run; ``kernel`` runs have ``calls``.
        reason: why it is not predicted; empty where it is.
        without: prefixes of rows the prediction may not use.
        assumed: what the source does not state.
    """

    id: str
    role: str
    group: str
    platform: str
    metric: str
    measured: float
    quantity: str
    run: Mapping[str, Any]
    reason: str = ""
    without: tuple[str, ...] = ()
    assumed: str = ""


def points() -> list[Point]:
    """Every point that claims to be predictable, calibration points included."""
    stock = table("validation_points")["points"]
    return [_point(p) for p in stock if p["role"] in ("validation", "calibration", "kernel")]


def _point(p: Mapping[str, Any]) -> Point:
    runs = table("validation_runs")
    spec = runs["runs"].get(p["id"]) or _derived(p, runs) or {
        "group": "other", "not": "source of kernel rates, not a step",
    }  # fmt: skip
    metric = spec.get("metric", next(iter(p["metrics"])))
    value = p["metrics"][metric]["value"]
    return Point(
        p["id"], p["role"], spec["group"], p["platform"], metric,
        value if isinstance(value, (int, float)) else float("nan"),
        spec.get("as", ""), spec.get("set") or spec.get("kernel") or {},
        spec.get("not", ""), tuple(spec.get("without", ())), spec.get("assumed", ""),
    )  # fmt: skip


def _derived(p: Mapping[str, Any], runs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Runs that follow from the point's own configuration by one rule a family."""
    c = p["config"]
    if "decode_ep" in c:
        tp, ep = c["decode_tp"], c["decode_ep"]
        keys = dict(
            model=p["model"], hardware=p["platform"], phase="decode", batch=c["bs_per_rank"],
            context=c["isl"] + c["osl"] // 2, tp=tp, ep=ep, ranks=max(tp, ep),
        )  # fmt: skip
        return {"group": f"R1 {p['platform'].upper()}", "metric": "tpot_ms", "as": "tpot_ms",
                "set": keys, "assumed": "half of the output generated"}  # fmt: skip
    if "chain_m" in c:
        chain = [
            {"op": "gemm_mad.gemm", "params": {"m": c["chain_m"], "n": n, "k": k}}
            for n, k in c["shapes"]
        ]
        return {
            "group": "Own chain H200",
            "metric": "us",
            "as": "us",
            "without": ["own_products"],
            "kernel": {"hardware": p["platform"], "phase": "decode", "calls": chain},
        }
    for prefix, spec in runs["moe_kernels"].items():
        if p["id"].startswith(prefix):
            return {"group": spec["group"], "metric": "us", "as": "us",
                    "without": [prefix.partition("_")[2]], "kernel": _mega(p, spec)}  # fmt: skip
    for prefix, spec in runs["gemm_kernels"].items():
        if p["id"].startswith(prefix):
            shape = {k: c[k] for k in ("m", "n", "k")}
            call = {"op": "gemm_mad.gemm",
                    "params": {**shape, "a": "fp8_1x128", "b": "fp8_128x128"}}  # fmt: skip
            kernel = {"hardware": spec["hardware"], "phase": "prefill", "calls": [call]}
            return {"group": spec["group"], "metric": "tflops", "as": "tflops", "kernel": kernel}
    return None


def _mega(p: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Dispatch, both products and combine of one MoE layer in one kernel."""
    m = model(p["model"])
    tokens, ep = p["config"]["tokens_per_rank"], p["config"]["ep"]
    e, k = m.n_routed_experts, m.num_experts_per_tok
    wire = dict(num_tokens=tokens, hidden=m.hidden_size, num_experts=e, num_topk=k, ep=ep,
                scaleup_ranks=ep)  # fmt: skip
    local = e // ep
    touched = local * (1 - (1 - k / e) ** (tokens * ep))
    rows = dict(rows=tokens * k, experts=local, touched=touched, a="fp8_1x128", b=spec["expert"])
    i, h = m.moe_intermediate_size, m.hidden_size
    calls = [
        {"op": "ep_comm.dispatch", "params": {**wire, "dtype": "fp8_1x128"}},
        {"op": "gemm_mad.grouped", "params": {**rows, "n": 2 * i, "k": h}},
        {"op": "gemm_mad.grouped", "params": {**rows, "n": h, "k": i}},
        {"op": "ep_comm.combine", "params": wire},
    ]
    phase = "prefill" if tokens > 256 else "decode"
    return {"hardware": spec["hardware"], "phase": phase, "fused": True, "calls": calls}


@lru_cache(maxsize=1024)
def _prepared(keys: tuple[tuple[str, Any], ...]) -> tuple[Model, Plan, Device]:
    config = {k: dict(v) if isinstance(v, tuple) else v for k, v in keys}
    m = with_formats(model(config["model"]), config.get("format") or {})
    return m, plan(config, m), device(config["hardware"])


def prepared(run: Mapping[str, Any]) -> tuple[Model, Plan, Device]:
    """Model, plan and device of a run's keys."""
    flat = {k: tuple(sorted(v.items())) if isinstance(v, dict) else v for k, v in run.items()}
    return _prepared(tuple(sorted(flat.items())))


def timed_run(run: Mapping[str, Any], without: tuple[str, ...] = ()) -> StepTime:
    """Step time of a run's keys, rows and calibrations of ``without`` left out."""
    from ascendkit.budget.backward import loss, update

    m, p, on = prepared(run)
    extra = []
    if p.phase == "train":
        extra = loss(m, p) + update(m, p, on.scaleup_ranks or p.ranks)
    return step_time(m, p, on, Stack(p.phase, p.launch, without), extra)


def calibrated_gap(point_id: str, without: tuple[str, ...]) -> float:
    """Seconds a graph of a calibration point took beyond its modelled kernels; at least zero."""
    point = next(p for p in points() if p.id == point_id)
    m, p, on = prepared(point.run)
    got = step_time(m, p, on, Stack(p.phase, p.launch, without), gaps=False)
    measured = point.measured * 1e-3 * (1 + float(point.run.get("acceptance", 0.0)))
    return max(measured - got.seconds, 0.0) / (1 + p.mtp)
