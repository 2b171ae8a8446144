"""One step of a plan on a device: operator lines with counts and times, and totals.

Time is told in one of two modes. ``peak``: every operator at the device's peak rates, one after
another; a bound. ``curves``: measured kernels, overlaps, pipeline and gaps; an expectation with a
band and the origin of every part.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ascendkit.budget.backward import backward, loss, update
from ascendkit.budget.call import Call
from ascendkit.budget.curves.lookup import Stack, timing
from ascendkit.budget.flops import MEGATRON, train_flops
from ascendkit.budget.forward import Segment, merged, segments
from ascendkit.budget.memory import Memory, memory
from ascendkit.budget.parts import StepTime
from ascendkit.budget.plan import Plan
from ascendkit.budget.roofline import RESOURCES, check_formats, roofline
from ascendkit.budget.stages import Flow, flow
from ascendkit.budget.steptime import step_time
from ascendkit.budget.warnings import warnings
from ascendkit.hardware import Device
from ascendkit.model import Model

TIMES = ("curves", "peak")


@dataclass
class Line:
    """All calls of one label: what they do on one rank in one step, and how long that takes.

    ``resource_s`` are seconds at peak rates, ``seconds`` is the time of the chosen mode, ``marks``
    its parts by origin, ``waiting`` what of it is launch and latency.
    """

    label: str
    calls: float = 0.0
    ops: set[str] = field(default_factory=set)
    flops: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, float] = field(default_factory=dict)
    link: dict[str, float] = field(default_factory=dict)
    resource_s: dict[str, float] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    seconds: float = 0.0
    marks: dict[str, float] = field(default_factory=dict)
    waiting: float = 0.0
    spread: float = 0.0
    outside: bool = False
    missing: set[str] = field(default_factory=set)

    @property
    def bound(self) -> str:
        """The resource with the most time over the line's calls, or ``launch`` where waiting is."""
        if self.waiting > 0.5 * self.seconds:
            return "launch"
        return max(self.resource_s, key=lambda r: self.resource_s[r], default="unknown")

    @property
    def mark(self) -> str:
        """Origins of the line's time, largest first: ``PT`` is mostly published, partly not."""
        return "".join(sorted(self.marks, key=lambda k: -self.marks[k]))

    def add(self, call: Call, device: Device, stack: Stack | None) -> None:
        """Book ``call.count`` calls; without a ``stack`` at peak rates."""
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
        self.unknown.update(time.unknown)
        if stack is None:
            self.seconds += n * time.seconds
        else:
            got = timing(call, device, stack)
            self.seconds += n * got.seconds
            self.waiting += n * got.idle
            self.spread += n * got.seconds * got.sigma
            self.outside |= not got.inside
            self.missing.update(got.missing)
            _book(self.marks, got.mark, n * got.seconds)
        for resource, value_s in time.by_resource.items():
            if value_s is not None:
                _book(self.resource_s, resource, n * value_s)


@dataclass(frozen=True)
class Step:
    """A budgeted step of one plan on one device; ``time`` is None in peak mode."""

    model: Model
    plan: Plan
    device: Device
    calls: tuple[Call, ...]
    lines: tuple[Line, ...]
    memory: Memory
    warnings: tuple[str, ...]
    stack: Stack | None = None
    time: StepTime | None = None
    peak: Flow | None = None

    @property
    def serial(self) -> float:
        """Operators one after another."""
        return sum(line.seconds for line in self.lines)

    @property
    def seconds(self) -> float:
        """Time of the step: with overlaps, pipeline and gaps, or all in series in peak mode.

        In inference over pipeline stages, of one batch through all of them.
        """
        if self.time is not None:
            return self.time.seconds
        return self.serial if self.peak is None else self.peak.latency

    @property
    def interval(self) -> float:
        """Seconds between two steps of a rank; less than one where ``pp`` batches are in flight."""
        if self.time is not None:
            return self.time.interval
        return self.serial if self.peak is None else self.peak.interval

    @property
    def rate(self) -> float:
        """New tokens a second and rank, no draft accepted."""
        return self.tokens / self.interval / self.plan.ranks

    @property
    def lower_bound(self) -> bool:
        """Whether some rate is unknown, so that the time is at least what is printed."""
        return bool(self.unknown) if self.time is None else bool(self.time.missing)

    @property
    def busy(self) -> dict[str, float]:
        """Share of the step each resource would work at its peak rate; the largest binds."""
        total: dict[str, float] = {}
        for line in self.lines:
            for resource, seconds in line.resource_s.items():
                _book(total, resource, seconds)
        found = {r: total[r] / self.interval for r in RESOURCES if r in total}
        waiting = sum(line.waiting for line in self.lines)
        return {**found, "launch": waiting / self.interval} if waiting else found

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
            return None if "cube" in self.unknown else cube / self.interval
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


def budget(m: Model, p: Plan, device: Device, time: str = "curves") -> Step:
    """Count one step of ``p`` and time it on ``device``; ``time`` is one of :data:`TIMES`.

    Raises ValueError for a format that the device has no unit for.
    """
    check_formats(device, (m.linear_format, m.expert_format, m.activation_format))
    domain = device.scaleup_ranks
    found = segments(m, p, domain or p.ranks)
    calls = merged(found, p)
    held = memory(m, p, found)
    stack = Stack(p.phase, p.launch) if time == "curves" else None
    extra: list[Call] = []
    if p.phase == "train":
        extra = loss(m, p) + update(m, p, domain or p.ranks)
        one_pass = calls + [c for c in extra if c.part != "optimizer"]
        one_pass += backward(calls, p.recompute)
        calls = [replace(c, count=c.count * p.micro_batches) for c in one_pass]
        calls += [c for c in extra if c.part == "optimizer"]
    whole = step_time(m, p, device, stack, extra) if stack is not None else None
    lines: dict[str, Line] = {}
    for call in calls:
        label = call.label if call.part != "backward" else _backward_label(call.label)
        lines.setdefault(label, Line(label)).add(call, device, stack)
    ordered = sorted(lines.values(), key=lambda line: -line.seconds)
    said = tuple(warnings(m, p, device, ordered, whole))
    peak = None
    if whole is None and p.phase != "train" and p.pp > 1:
        peak = flow(m, p, found, lambda s: _at_peak(s, device))
    return Step(m, p, device, tuple(calls), tuple(ordered), held, said, stack, whole, peak)


def _at_peak(s: Segment, device: Device) -> float:
    return sum(c.count * roofline(c.cost, device).seconds for c in s.calls)


def _backward_label(label: str) -> str:
    return label if "gradient" in label or label == "recompute" else f"{label}, backward"


def _book(table: dict[str, float], key: str, value: float) -> None:
    table[key] = table.get(key, 0.0) + value
