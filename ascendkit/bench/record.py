"""One measured figure a line of JSON, read back as strictly as it was written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ascendkit.cost import UNITS
from ascendkit.errors import bad_value, unknown

MEASURED_ON = ("reference", "ascend", "cuda")
"""Platforms whose time is measured; emulated time is an estimate, never a record of this kind."""
BOUNDS = ("hbm", "l2", "launch", *UNITS)
L2_STATES = ("cold", "warm", "mixed", "unknown")
CEILINGS = ("copy", "read", "write")

_KEYS = {
    "time_us": {"p20", "p50", "p80"},
    "bytes": {"minimum", "hbm", "l2", "onchip", "link"},
    "achieved": {"gbs", "tflops"},
}


@dataclass(frozen=True)
class Record:
    """One case of one op, timed once.

    Args:
        op: dotted name.
        case: name of the case.
        platform: one of :data:`MEASURED_ON`.
        device: name the runtime or the system gives.
        params: shape parameters of the case.
        time_us: p20, p50, p80 in microseconds for one call.
        flops: ``{unit, dtype, flop}`` for each unit and dtype.
        bytes: ``minimum`` (each input read once, each output written once), planned ``hbm``,
            ``l2``, ``onchip``, and ``link`` sent by this rank.
        achieved: ``gbs`` of the minimum bytes, ``tflops`` of all FLOPs, at p50.
        ceiling: ``{kind, bytes, gbs}`` measured in the same run on the same number of bytes; None
            where it means nothing (host time).
        bound: the limit that alone would take the longest: ``hbm`` or ``l2`` by the measured
            ceiling, ``launch`` by the measured floor, a compute unit by the published peak; None
            for host time.
        commit: of the code.
        environment: versions.
        method: how it was timed.
        l2_state: one of :data:`L2_STATES`.
    """

    op: str
    case: str
    platform: str
    device: str
    params: Mapping[str, Any]
    time_us: Mapping[str, float]
    flops: tuple[Mapping[str, Any], ...]
    bytes: Mapping[str, float]
    achieved: Mapping[str, float]
    ceiling: Mapping[str, Any] | None
    bound: str | None
    commit: str
    environment: Mapping[str, str]
    method: str
    l2_state: str

    def __post_init__(self) -> None:
        for name in ("op", "case", "device", "commit", "method"):
            _text(name, getattr(self, name))
        _one_of("platform", self.platform, MEASURED_ON)
        _one_of("l2_state", self.l2_state, L2_STATES)
        if self.bound is not None:
            _one_of("bound", self.bound, BOUNDS)
        for name, keys in _KEYS.items():
            _numbers(name, getattr(self, name), keys)
        t = self.time_us
        if not 0 < t["p20"] <= t["p50"] <= t["p80"]:
            raise bad_value("record time_us", dict(t), "0 < p20 <= p50 <= p80")
        for flop in self.flops:
            _keys("flops", flop, {"unit", "dtype", "flop"})
            _one_of("flops.unit", flop["unit"], UNITS)
            _text("flops.dtype", flop["dtype"])
            _number("flops.flop", flop["flop"])
        if self.ceiling is not None:
            _keys("ceiling", self.ceiling, {"kind", "bytes", "gbs"})
            _one_of("ceiling.kind", self.ceiling["kind"], CEILINGS)
            _number("ceiling.bytes", self.ceiling["bytes"])
            _number("ceiling.gbs", self.ceiling["gbs"])
        for name in ("params", "environment"):
            got = getattr(self, name)
            if not isinstance(got, Mapping):
                raise bad_value(f"record {name}", got, "a mapping")
            try:
                json.dumps(got, allow_nan=False)
            except (TypeError, ValueError) as e:
                raise bad_value(f"record {name}", got, f"JSON ({e})") from None

    @property
    def of_ceiling(self) -> float | None:
        """Achieved rate over the ceiling's; None where there is no ceiling."""
        return None if self.ceiling is None else self.achieved["gbs"] / self.ceiling["gbs"]

    def to_json(self) -> str:
        """One line, without the newline."""
        return json.dumps(asdict(self), allow_nan=False)


def from_json(line: str) -> Record:
    """A record from its line. ValueError for bad JSON, unknown, missing or illegal fields."""
    try:
        raw = json.loads(line, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as e:
        raise ValueError(f"record: malformed JSON at column {e.colno}: {e.msg}") from None
    if not isinstance(raw, dict):
        raise bad_value("record", raw, "a JSON object")
    legal = [f.name for f in fields(Record)]
    for name in raw:
        if name not in legal:
            raise unknown("record field", name, legal)
    missing = [n for n in legal if n not in raw]
    if missing:
        raise bad_value("record", sorted(raw), f"also {', '.join(missing)}")
    if not isinstance(raw["flops"], list):
        raise bad_value("record flops", raw["flops"], "a list")
    return Record(**{**raw, "flops": tuple(raw["flops"])})


def _text(name: str, got: Any) -> None:
    if not isinstance(got, str) or not got.strip() or "\n" in got:
        raise bad_value(f"record {name}", got, "one line of text")


def _one_of(name: str, got: Any, legal: Iterable[str]) -> None:
    if got not in tuple(legal):
        raise unknown(f"record {name}", got, legal)


def _number(name: str, got: Any) -> None:
    number = isinstance(got, (int, float)) and not isinstance(got, bool)
    if not number or not math.isfinite(got) or got < 0:
        raise bad_value(f"record {name}", got, "a finite number, not negative")


def _keys(name: str, got: Any, legal: set[str]) -> None:
    if not isinstance(got, Mapping) or set(got) != legal:
        raise bad_value(f"record {name}", got, f"a mapping with {', '.join(sorted(legal))}")


def _numbers(name: str, got: Any, legal: set[str]) -> None:
    _keys(name, got, legal)
    for key, value in got.items():
        _number(f"{name}.{key}", value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise bad_value("record keys", [k for k, _ in pairs], "each key once")
    return found


def _no_constant(name: str) -> float:
    raise bad_value("record number", name, "a finite number")
