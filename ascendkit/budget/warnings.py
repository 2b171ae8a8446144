"""What a reader must know before quoting a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ascendkit.budget.parts import StepTime
from ascendkit.budget.plan import Plan
from ascendkit.budget.roofline import falls_to
from ascendkit.budget.skew import BALANCED, load
from ascendkit.hardware import Device
from ascendkit.model import Model

if TYPE_CHECKING:
    from ascendkit.budget.step import Line

CONTESTED = (
    "cores_aic", "peak_fp8_tflops", "peak_mxfp4_tflops", "peak_bf16_tflops", "hbm_tbs", "hbm_gb",
)  # fmt: skip


def warnings(
    m: Model, p: Plan, device: Device, lines: Sequence[Line], time: StepTime | None
) -> Iterator[str]:
    """Sentences on the device, the layout, the sources and the reach of the measured rows."""
    if time is not None and time.missing:
        yield (
            f"{device.key}: not claimed: no rate for {', '.join(time.missing)}, so times marked >="
            " are lower bounds"
        )
    elif time is not None and not time.claimed:
        shares = ", ".join(f"{k} {v:.0%}" for k, v in time.shares.items())
        yield f"{device.key}: time not claimed, {shares} (over 20 % transferred or assumed)"
    used = {k.partition(".")[2] for ln in lines for k in ln.flops if k.startswith("cube")}
    for dtype in sorted(used):
        if wider := falls_to(device, dtype):
            yield f"{device.key} has no {dtype} units; run as {wider}"
    if p.ranks > 1 and device.scaleup_ranks is None:
        yield (
            f"{device.key}: ranks of a scale-up domain unknown; all {p.ranks} counted as one domain"
        )
    if device.get("scaleup_payload_gbs_measured"):
        yield (
            f"{device.key}: links at network layer 0 (mesh inside a SuperPoD,"
            f" {device.get('scaleup_gbs_unidir')} GB/s); measured rows are of layer 1 (Clos,"
            f" {device.get('scaleup_payload_gbs_measured')} GB/s)"
        )
    if p.pp > 1 and p.phase == "train" and time is None:
        yield "pipeline: mean over stages, bubbles not counted"
    if p.pp > 1 and p.phase != "train":
        yield f"pipeline: {p.pp} batches in flight, each in another stage; caches hold all of them"
    if p.ep > 1:
        yield _routing(m, p)
    outside = [line.label for line in lines if line.outside]
    if outside:
        yield f"{device.key}: beyond the measured range: {', '.join(sorted(outside)[:8])}" + (
            f" and {len(outside) - 8} more" if len(outside) > 8 else ""
        )
    yield from (f"sources disagree on {c}" for c in device.conflicts(*CONTESTED))
    yield from (f"{device.key}: {s}" for s in device.recalled(*CONTESTED))
    if device.ranks_per_package > 1:
        yield f"{device.key}: a rank is a die, {device.ranks_per_package} to a package"


def _routing(m: Model, p: Plan) -> str:
    if p.routing == BALANCED:
        return "routing: balanced over experts and ranks"
    got = load(p.routing, m.n_routed_experts, m.num_experts_per_tok, p.ep, p.moe_tokens * p.ep)
    name = p.routing if isinstance(p.routing, str) else "a histogram"
    return f"routing: {name}; the fullest rank gets {got.factor:.3g} times the mean and decides"
