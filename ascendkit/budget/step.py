"""One step of a plan on a device: operator lines with counts and times, and totals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ascendkit.budget.backward import backward, loss, update
from ascendkit.budget.call import Call
from ascendkit.budget.flops import MEGATRON, train_flops
from ascendkit.budget.forward import forward
from ascendkit.budget.memory import Memory, memory
from ascendkit.budget.plan import Plan
from ascendkit.budget.roofline import RESOURCES, roofline
from ascendkit.hardware import Device
from ascendkit.model import Model


@dataclass
class Line:
    """All calls of one label: what they do on one rank in one step, and how long at peak."""

    label: str
    calls: float = 0.0
    ops: set[str] = field(default_factory=set)
    flops: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, float] = field(default_factory=dict)
    link: dict[str, float] = field(default_factory=dict)
    resource_s: dict[str, float] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    seconds: float = 0.0

    @property
    def bound(self) -> str:
        """The resource with the most time over the line's calls."""
        return max(self.resource_s, key=lambda r: self.resource_s[r], default="unknown")

    def add(self, call: Call, device: Device) -> None:
        """Book ``call.count`` calls."""
        cost, n = call.cost, call.count
        self.calls += n
        self.ops.add(call.op)
        for (unit, dtype), value in cost.flops().items():
            _book(self.flops, f"{unit}.{dtype}", n * value)
        planned = cost.planned_bytes()
        _book(self.bytes, "hbm", n * cost.minimum_bytes())
        _book(self.bytes, "l2", n * planned["l2"])
        _book(self.bytes, "onchip", n * planned["onchip"])
        for link, value in cost.link_bytes().items():
            _book(self.link, link, n * value)
        time = roofline(cost, device)
        self.seconds += n * time.seconds
        self.unknown.update(time.unknown)
        for resource, value_s in time.by_resource.items():
            if value_s is not None:
                _book(self.resource_s, resource, n * value_s)


@dataclass(frozen=True)
class Step:
    """A budgeted step of one plan on one device. Times are seconds at peak rates, in series."""

    model: Model
    plan: Plan
    device: Device
    calls: tuple[Call, ...]
    lines: tuple[Line, ...]
    memory: Memory
    warnings: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Sum over operators, each at its binding resource."""
        return sum(line.seconds for line in self.lines)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Resources without a rate; the step time is then a lower bound of the bound."""
        return tuple(r for r in RESOURCES if any(r in line.unknown for line in self.lines))

    @property
    def common_unknown(self) -> frozenset[str]:
        """Resources unknown for every line: said once, not on every line."""
        return frozenset.intersection(*(frozenset(line.unknown) for line in self.lines))

    @property
    def tokens(self) -> int:
        """New tokens of the step over the whole job (no draft accepted, in decode)."""
        p = self.plan
        if p.phase == "train":
            return p.global_batch * p.seq
        return p.dp * p.batch * (p.seq if p.phase == "prefill" else 1)

    @property
    def mfu(self) -> float | None:
        """Training: model FLOPs over BF16 peak. Inference: matrix time at peak over step time.

        None where a rate is unknown.
        """
        if self.plan.phase != "train":
            cube = sum(line.resource_s.get("cube", 0.0) for line in self.lines)
            return None if "cube" in self.unknown else cube / self.seconds
        peak = self.device.flops_per_s("cube", "bf16")
        if peak is None:
            return None
        m, p = self.model, self.plan
        flops = self.tokens * train_flops(m, p.seq, MEGATRON, bool(p.mtp))
        return flops / (p.ranks * peak * self.seconds)

    @property
    def mfu_text(self) -> str:
        """What the MFU counts."""
        if self.plan.phase == "train":
            return f"{MEGATRON.text}; over BF16 peak"
        return "executed matrix FLOPs, each product over the peak of its own format"


def budget(m: Model, p: Plan, device: Device) -> Step:
    """Count one step of ``p`` and time it at the peak rates of ``device``."""
    domain = device.scaleup_ranks
    calls = forward(m, p, domain or p.ranks)
    held = memory(m, p, calls)
    if p.phase == "train":
        one_pass = calls + loss(m, p)
        one_pass += backward(calls, p.recompute)
        calls = [replace(c, count=c.count * p.micro_batches) for c in one_pass]
        calls += update(m, p, domain or p.ranks)
    lines: dict[str, Line] = {}
    for call in calls:
        label = call.label if call.part != "backward" else _backward_label(call.label)
        lines.setdefault(label, Line(label)).add(call, device)
    ordered = sorted(lines.values(), key=lambda line: -line.seconds)
    return Step(m, p, device, tuple(calls), tuple(ordered), held, tuple(_warnings(p, device)))


def _backward_label(label: str) -> str:
    return label if "gradient" in label or label == "recompute" else f"{label}, backward"


def _warnings(p: Plan, device: Device) -> Iterable[str]:
    if p.ranks > 1 and device.scaleup_ranks is None:
        yield (
            f"{device.key}: ranks of a scale-up domain unknown; all {p.ranks} counted as one domain"
        )
    if p.pp > 1:
        yield "pipeline: mean over stages, bubbles not counted"
    if p.ep > 1:
        yield "routing: balanced over experts and ranks"
    rates = ("cores_aic", "peak_fp8_tflops", "peak_mxfp4_tflops", "peak_bf16_tflops", "hbm_tbs")
    yield from (f"sources disagree on {c}" for c in device.conflicts(*rates, "hbm_gb"))
    if device.ranks_per_package > 1:
        yield f"{device.key}: a rank is a die, {device.ranks_per_package} to a package"


def _book(table: dict[str, float], key: str, value: float) -> None:
    table[key] = table.get(key, 0.0) + value
