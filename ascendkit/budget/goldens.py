"""Counting held against numbers recomputed by hand and numbers others published.

A golden passes when our count meets ``recomputed`` to its printed digits and, where somebody
published the number, ``value`` within 0.5 % or (``agree: printed``) to its printed digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ascendkit.budget.flops import (
    MEGATRON,
    TORCHTITAN,
    Convention,
    active_params,
    decode_flops,
    total_params,
    train_flops,
)
from ascendkit.budget.kv import kv_bytes
from ascendkit.data import table
from ascendkit.errors import unknown
from ascendkit.hardware import device
from ascendkit.model import Model, layer_weights, layers, model

TOLERANCE = 0.005
Config = dict[str, Any]

PRODUCTS = Convention(router=True)
EVERYTHING = Convention(router=True, streams=True)


def _tables(m: Model) -> float:
    found = (w for layer in layers(m) for w in layer_weights(m, layer).values())
    return sum(w.params for w in found if w.name == "engram_table")


def _tflops(m: Model, c: Config, convention: Convention) -> float:
    per_token = train_flops(m, c["seq"], convention, bool(c["mtp"]))
    tokens: float = c["seq"] * c["global_batch"] / c["ranks"]
    seconds: float = c["step_s"]
    return per_token * tokens / seconds / 1e12


def _mfu(m: Model, c: Config, convention: Convention) -> float:
    peak = device(c["device"]).flops_per_s("cube", "bf16")
    assert peak is not None
    return _tflops(m, c, convention) * 1e12 / peak


METRICS: dict[str, Callable[[Model, Config], float]] = {
    "params": lambda m, c: total_params(m, bool(c["mtp"])),
    "params_total_b": lambda m, c: total_params(m) / 1e9,
    "params_backbone_b": lambda m, c: (total_params(m) - _tables(m)) / 1e9,
    "params_engram_b": lambda m, c: _tables(m) / 1e9,
    "matmul_params_active_b": lambda m, c: active_params(m, PRODUCTS) / 1e9,
    "active_decode_b": lambda m, c: active_params(m, EVERYTHING) / 1e9,
    "active_prefill_b": lambda m, c: active_params(m, PRODUCTS, encoder_only=True) / 1e9,
    "flops_per_token": lambda m, c: train_flops(m, c["seq"], TORCHTITAN, bool(c["mtp"])),
    "model_gflops_per_token": lambda m, c: train_flops(m, c["seq"], MEGATRON, bool(c["mtp"])) / 1e9,
    "tflops_causal": lambda m, c: _tflops(m, c, MEGATRON),
    "tflops_noncausal": lambda m, c: _tflops(m, c, Convention(causal=False)),
    "mfu_causal": lambda m, c: _mfu(m, c, MEGATRON),
    "mfu_noncausal": lambda m, c: _mfu(m, c, Convention(causal=False)),
    "kv_bytes_per_token": lambda m, c: kv_bytes(m)[0],
    "kv_bytes_per_token_fp8_index": lambda m, c: kv_bytes(m, index_key_bytes=132)[0],
    "kv_ratio": lambda m, c: kv_bytes(m)[0] / kv_bytes(model(c["other"]))[0],
    "fp8_flops_ratio": lambda m, c: (
        decode_flops(m, c["context"], True) / decode_flops(model(c["other"]), c["context"], True)
    ),
}
"""One function a metric name; ``c`` is the point's ``config``."""


@dataclass(frozen=True)
class Golden:
    """One metric of one golden point."""

    id: str
    metric: str
    unit: str
    computed: float
    recomputed: float
    published: float | None
    source: str
    exact: bool
    agrees: bool

    @property
    def ok(self) -> bool:
        """Whether the count meets the recomputed value and, if there is one, the published."""
        return self.exact and self.agrees


def goldens() -> list[Golden]:
    """All goldens, computed now."""
    points = [p for p in table("validation_points")["points"] if p["role"] == "golden"]
    return [
        _golden(p["id"], name, row, metric_function(name)(model(p["model"]), p["config"]))
        for p in points
        for name, row in p["metrics"].items()
    ]


def metric_function(name: str) -> Callable[[Model, Config], float]:
    """The function of a metric; ValueError naming the nearest."""
    if name not in METRICS:
        raise unknown("golden metric", name, METRICS)
    return METRICS[name]


def _golden(id: str, name: str, row: dict[str, Any], computed: float) -> Golden:
    published = row["value"]
    if published is None:
        agrees = True
    elif row.get("agree") == "printed":
        agrees = meets(computed, published)
    else:
        agrees = abs(computed / published - 1) <= TOLERANCE
    return Golden(
        id, name, row["unit"], computed, row["recomputed"], published, row["source"],
        exact=meets(computed, row["recomputed"]), agrees=agrees,
    )  # fmt: skip


def meets(computed: float, printed: float) -> bool:
    """Whether ``computed`` rounds to ``printed`` at the digits ``printed`` is written with."""
    digits = len(repr(printed).partition(".")[2]) if isinstance(printed, float) else 0
    return round(computed, digits) == printed
