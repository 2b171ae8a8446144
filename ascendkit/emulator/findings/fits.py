"""Does it fit on the chip, before any run: buffers by live range and version, peak by memory.

Two numbers a memory: what TileLang's allocator asks for (where the last buffer ends), and what is
in use at once in program order, which is the least that any allocator could ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ascendkit.emulator import liveness, source
from ascendkit.emulator.linemap import LineMap, Origin

KIB = 1024
_ALIGN = 32


def capacities(simt: bool = False) -> dict[str, dict[str, int]]:
    """Usable bytes by chip and memory. ``simt``: the kernel has SIMT functions."""
    from ascendkit.hardware import UB_BYTES, UB_BYTES_SIMT, device

    found: dict[str, dict[str, int]] = {}
    for title, key in (("950", "ascend_950pr"), ("A2/A3", "ascend_910b")):
        chip = device(key)
        sizes = {
            m: int(chip.get(f"{m.lower()}_kb")) * KIB for m in ("UB", "L1", "L0A", "L0B", "L0C")
        }
        if title == "950":
            sizes["UB"] = UB_BYTES_SIMT if simt else UB_BYTES
        found[title] = sizes
    return found


@dataclass(frozen=True)
class Held:
    """One buffer: ``bytes`` covers ``versions``; used from Python line ``first`` to ``last``."""

    name: str
    space: str
    bytes: int
    versions: int = 1
    offset: int = -1
    first: Origin | None = None
    last: Origin | None = None


@dataclass(frozen=True)
class Memory:
    """The need of one memory.

    Attributes:
        placed: bytes as TileLang places the buffers; None where it placed nothing.
        live: bytes in use at once at ``peak``; ``at_peak`` names the buffers.
        over: chip -> the first buffer that no longer fits as placed, or what is too large at once.
    """

    space: str
    live: int
    peak: Origin | None
    at_peak: tuple[Held, ...]
    placed: int | None = None
    over: Mapping[str, str] = field(default_factory=dict)

    @property
    def need(self) -> int:
        """What a run needs: as placed, if known."""
        return self.live if self.placed is None else self.placed


@dataclass(frozen=True)
class Fit:
    """The need of one kernel.

    Attributes:
        ok: it fits a 950.
        reason: why TileLang itself refused to lower it, empty if it did not.
        bound: what the numbers are worth if they are not the whole need (of a source text).
        overlaps: of a source text: what shares bytes.
    """

    kernel: str
    simt: bool
    buffers: tuple[Held, ...]
    memories: tuple[Memory, ...]
    capacity: Mapping[str, Mapping[str, int]]
    reason: str = ""
    bound: str = ""
    overlaps: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether each memory of a 950 holds what the kernel needs there."""
        return not self.reason and not self.too_large

    @property
    def too_large(self) -> bool:
        """Whether some memory of a 950 is too small."""
        return any(m.need > self.capacity["950"][m.space] for m in self.memories)

    @property
    def verdict(self) -> str:
        """In words, no more than is known."""
        if self.too_large:
            return "does NOT fit a 950"
        if self.reason:
            return "cannot be judged"
        if not self.bound:
            return "fits a 950"
        if not self.memories:
            return "cannot be judged: no copy with a constant address and size"
        return "nothing seen that does not fit a 950"

    def to_json(self) -> dict[str, Any]:
        """Plain containers."""
        return {**asdict(self), "ok": self.ok, "verdict": self.verdict}


def fits(prim_func: Any, pass_configs: Mapping[str, Any] | None = None) -> tuple[Fit, ...]:
    """What each kernel of a TileLang function needs on the chip; a kernel too large is no error.

    Raises:
        TypeError: not a prim_func.
    """
    from ascendkit.emulator.linemap import load
    from ascendkit.emulator.lowered import lower, wrong_kind

    if not hasattr(prim_func, "buffer_map"):
        raise wrong_kind("function", prim_func, "a TileLang prim_func")
    versions = _declared(prim_func)
    try:
        entry = lower(prim_func, pass_configs)
    except Exception as error:  # TVM's errors have no common base
        return (_refused(prim_func, pass_configs, versions, error),)
    origins = load(entry, prim_func)
    simt = "__simt_vf__" in entry["source"]
    names = source.kernels(entry["source"])
    return tuple(_fit(name, origins, versions, simt) for name in names)


def tiles(count_bytes: int, space: str = "UB") -> dict[str, bool]:
    """Whether a number of bytes fits each chip; 950 also with SIMT functions."""
    plain, simt = capacities(), capacities(simt=True)
    return {
        "950": count_bytes <= plain["950"][space],
        "950 with SIMT": count_bytes <= simt["950"][space],
        "A2/A3": count_bytes <= plain["A2/A3"][space],
    }


# ---- from a lowered function ---------------------------------------------------------------------


def _fit(name: str, origins: LineMap, versions: Mapping[str, int], simt: bool) -> Fit:
    rows = [p for p in origins.places.get(name, ()) if p.first >= 0]
    held = {
        id(p): Held(
            p.name,
            p.space,
            p.bytes,
            _versions(versions, p.name, p.bytes),
            p.offset,
            origins.step(name, p.first),
            origins.step(name, p.last),
        )
        for p in rows
    }
    memories = []
    for space in sorted({p.space for p in rows}):
        mine = [p for p in rows if p.space == space]
        live, step, at = _peak([(p.bytes, p.first, p.last, held[id(p)]) for p in mine])
        known = all(p.offset >= 0 for p in mine)
        placed = max(p.offset + p.bytes for p in mine) if known else None
        over = {}
        for chip, sizes in capacities(simt).items():
            limit = sizes[space]
            past = sorted((p for p in mine if p.offset + p.bytes > limit), key=lambda p: p.offset)
            if placed is not None and past:
                first = past[0]
                over[chip] = (
                    f"{first.name} [{first.offset}, {first.offset + first.bytes}) is the first "
                    f"buffer past {limit}"
                )
            elif placed is None and live > limit:
                over[chip] = f"{len(at)} buffers in use at once"
        memories.append(Memory(space, live, _near(origins, name, step), tuple(at), placed, over))
    return Fit(name, simt, tuple(held.values()), tuple(memories), capacities(simt))


def _near(origins: LineMap, name: str, step: int) -> Origin | None:
    """The line of a step, or of the nearest earlier step that has one."""
    return next((o for s in range(step, -1, -1) if (o := origins.step(name, s))), None)


def _peak(rows: Sequence[tuple[int, int, int, Held]]) -> tuple[int, int, list[Held]]:
    """Most bytes in use at one step, that step, and the buffers then in use, largest first."""
    best = (0, 0, [])  # type: tuple[int, int, list[Held]]
    for step in sorted({first for _, first, _, _ in rows}):
        at = [(b, held) for b, first, last, held in rows if first <= step <= last]
        total = sum(-(-b // _ALIGN) * _ALIGN for b, _ in at)
        if total > best[0]:
            best = (total, step, [h for _, h in sorted(at, key=lambda r: -r[0])])
    return best


def _declared(prim_func: Any) -> dict[str, int]:
    """Bytes of one version of each buffer, as written; 0 for a name of several buffers."""
    from tilelang import tvm

    found: dict[str, int] = {}

    def visit(node: Any) -> None:
        if type(node).__name__ == "SBlock":
            for buffer in node.alloc_buffers:
                name, size = str(buffer.name), liveness.buffer_bytes(buffer)
                found[name] = size if found.get(name, size) == size else 0

    tvm.tirx.stmt_functor.post_order_visit(prim_func.body, visit)
    return found


def _versions(declared: Mapping[str, int], name: str, size: int) -> int:
    one = declared.get(name, 0)
    return size // one if one and size % one == 0 else 1


def _refused(
    prim_func: Any, configs: Mapping[str, Any] | None, versions: Mapping[str, int], error: Exception
) -> Fit:
    """TileLang does not lower it: judge the buffers as they are written."""
    program = liveness.analyse(prim_func, lambda statement: 0)
    origins = _lines(prim_func)
    held = [
        (b.bytes, b.first, b.last, Held(b.name, b.space, b.bytes, 1, -1, *_ends(origins, b)))
        for b in program.buffers.values()
        if b.first >= 0
    ]
    simt, limits = False, capacities()
    memories = []
    for space in sorted({h.space for *_, h in held}):
        live, step, at = _peak([r for r in held if r[3].space == space])
        over = {
            chip: f"{len(at)} buffers in use at once"
            for chip, sizes in limits.items()
            if live > sizes[space]
        }
        memories.append(Memory(space, live, origins.get(step), tuple(at), None, over))
    reason = " ".join(str(error).strip().splitlines()[-1:])
    name = str(prim_func.attrs["global_symbol"]) if prim_func.attrs else ""
    return Fit(name, simt, tuple(h for *_, h in held), tuple(memories), limits, reason)


def _lines(prim_func: Any) -> dict[int, Origin]:
    """Python line of each step of a function that was not lowered."""
    from tilelang.ir import get_stmt_span

    found: list[Origin | None] = []

    def number(statement: Any) -> int:
        span = get_stmt_span(statement)
        found.append(Origin(str(span.source_name.name), int(span.line)) if span else None)
        return 0

    liveness.analyse(prim_func, number)
    return {step: origin for step, origin in enumerate(found) if origin}


def _ends(lines: Mapping[int, Origin], live: liveness.Live) -> tuple[Origin | None, Origin | None]:
    return lines.get(live.first), lines.get(live.last)
