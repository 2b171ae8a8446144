"""Mutants of capacity: a buffer grown past its memory, or versions of it that no longer fit.
``fits`` and ``lint`` judge them; nothing runs.

Only growth that cannot fit whatever the placement is a mutant: the buffer alone is larger than the
memory. Where the source stays what it was - versions that TileLang does not make, a buffer that no
statement uses - the mutant is equivalent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.emulator.corpus import Launch
from tests.emulator.mutation.outcome import EQUIVALENT, REPORTED, SURVIVED, Outcome

LIMITS = {
    "shared": ("UB", 248 << 10),
    "shared.l1": ("L1", 512 << 10),
    "shared.l0a": ("L0A", 64 << 10),
    "shared.l0b": ("L0B", 64 << 10),
    "shared.l0c": ("L0C", 256 << 10),
}
SIMT_LIMIT = 216 << 10
MOST_VERSIONS = 64
"""More take TileLang's scheduler too long."""


@dataclass(frozen=True, order=True)
class Growth:
    """Buffer ``name`` of a function with ``rows`` rows more, or as ``versions`` versions."""

    name: str
    space: str
    rows: int = 0
    versions: int = 0

    def __str__(self) -> str:
        what = f"{self.rows:+d} rows" if self.rows else f"{self.versions} versions"
        return f"{self.space} {self.name}: {what}"


def mutants(launch: Launch) -> list[Growth]:
    """Growth of every buffer of constant shape, by rows and by versions."""
    simt = "__simt_vf__" in launch.kernel.text
    found = []
    for buffer in _buffers(launch.function) if launch.function is not None else ():
        known = LIMITS.get(str(buffer.scope()).removesuffix(".dyn"))
        row = _bytes_of_row(buffer)
        if known is None or not row:
            continue
        space, limit = known
        limit = SIMT_LIMIT if simt and space == "UB" else limit
        rows = int(buffer.shape[0])
        found.append(
            Growth(str(buffer.name), space, rows=limit // row + 1 - min(rows, limit // row))
        )
        versions = limit // (row * rows) + 1
        if versions <= MOST_VERSIONS:
            found.append(Growth(str(buffer.name), space, versions=versions))
    return sorted(set(found))


def judge(launch: Launch, growth: Growth) -> Outcome:
    """Whether ``fits`` and ``lint`` say that the memory overflows, or that TileLang refuses so many
    versions (AK-LINT-008)."""
    from ascendkit.emulator.findings.fits import fits
    from ascendkit.emulator.findings.lint import lint
    from ascendkit.emulator.lowered import ascend_target, lower

    start = time.perf_counter()
    with ascend_target():
        grown = _grown(launch.function, growth)
        found = fits(grown, launch.configs)
        over = [
            m
            for fit in found
            for m in fit.memories
            if m.space == growth.space and m.need > fit.capacity["950"][m.space]
        ]
        said: set[str] = set()
        if over or any(fit.reason for fit in found):
            known = {"AK-CAPACITY-001", "AK-LINT-008"}
            said = {f.code for f in lint(grown, launch.configs)} & known
        by = tuple(sorted(said)) + (("fits",) if over else ())
        verdict = REPORTED if said and not any(fit.ok for fit in found) else SURVIVED
        if not by:
            text = lower(launch.function, launch.configs)["source"]
            same = lower(grown, launch.configs)["source"] == text
            verdict = EQUIVALENT if same else SURVIVED
    return Outcome(growth, verdict, by, time.perf_counter() - start)


def fits_as_it_is(launch: Launch) -> bool:
    """The correct function fits, by ``fits`` and by ``lint``."""
    from ascendkit.emulator.findings.fits import fits
    from ascendkit.emulator.findings.lint import lint
    from ascendkit.emulator.lowered import ascend_target

    with ascend_target():
        capacity = [f for f in lint(launch.function, launch.configs) if "CAPACITY" in f.code]
        return not capacity and all(fit.ok for fit in fits(launch.function, launch.configs))


def _blocks(function: Any) -> Iterator[Any]:
    from tilelang import tvm

    found: list[Any] = []
    tvm.tirx.stmt_functor.post_order_visit(function.body, found.append)
    return (n for n in found if type(n).__name__ == "SBlock")


def _buffers(function: Any) -> list[Any]:
    """Buffers whose name is that of one buffer alone."""
    found = [b for block in _blocks(function) for b in block.alloc_buffers]
    names = [str(b.name) for b in found]
    return [b for b in found if names.count(str(b.name)) == 1]


def _bytes_of_row(buffer: Any) -> int:
    """Bytes of one element of the first dimension; 0 if the shape is not constant."""
    from tilelang import tvm

    if not len(buffer.shape) or any(type(d).__name__ != "IntImm" for d in buffer.shape):
        return 0
    dtype = tvm.DataType(buffer.dtype)
    bits = int(dtype.bits) * int(dtype.lanes)
    for d in list(buffer.shape)[1:]:
        bits *= int(d)
    return bits // 8


def _grown(function: Any, growth: Growth) -> Any:
    from tilelang import tvm

    def change(block: Any) -> Any:
        held = [b for b in block.alloc_buffers if str(b.name) == growth.name]
        if not held:
            return None
        buffers, notes = list(block.alloc_buffers), dict(block.annotations)
        if growth.rows:
            buffers = [_larger(b, growth.rows) if b.same_as(held[0]) else b for b in buffers]
        else:
            versions = dict(notes.get("tl.buffer_versions_map", {}).items())
            versions = {k: int(v) for k, v in versions.items() if not k.same_as(held[0].data)}
            notes["tl.buffer_versions_map"] = {**versions, held[0].data: growth.versions}
        return tvm.tirx.SBlock(
            block.iter_vars,
            block.reads,
            block.writes,
            block.name_hint,
            block.body,
            block.init,
            buffers,
            block.match_buffers,
            notes,
        )

    body = tvm.tirx.stmt_functor.ir_transform(function.body, None, change, ["tirx.SBlock"])
    return function.with_body(body)


def _larger(buffer: Any, rows: int) -> Any:
    """The same memory with more rows."""
    from tilelang import tvm

    shape = [tvm.tirx.IntImm("int32", int(buffer.shape[0]) + rows), *list(buffer.shape)[1:]]
    return tvm.tirx.decl_buffer(
        shape,
        buffer.dtype,
        buffer.name,
        data=buffer.data,
        strides=buffer.strides,
        elem_offset=buffer.elem_offset,
        scope=buffer.scope(),
        data_alignment=buffer.data_alignment,
        offset_factor=buffer.offset_factor,
    )
