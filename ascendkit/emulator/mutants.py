"""Mutants: one instruction of a kernel executed wrongly, chosen by site, without compiling again.

``synchronisation(records)`` and ``data(records)`` name the mutants that a trace of the correct
kernel gives rise to; ``launch(mutate=[...])`` runs one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ascendkit.emulator import records, toolchain

KINDS = (
    "none",
    "drop",
    "earlier",
    "later",
    "renumber",
    "swap_pipes",
    "other_pipe",
    "count",
    "bytes",
    "source",
    "target",
    "source_stride",
    "target_stride",
    "mask",
    "shift",
)
"""As in runtime/mutate.h."""
ANY = 0xFFFFFFFF
CROSS = tuple(
    f"asc_sync_{scope}_{end}"
    for scope in ("inter", "subblock", "block", "intra")
    for end in ("arrive", "wait")
)
ONE_PIPE = ("asc_lock", "asc_unlock", *CROSS)
SIMT = ("asc_syncthreads", "coalesced_threads.sync", "asc_threadfence", "asc_mem_bar")
SYNC = ("asc_sync_notify", "asc_sync_wait", "asc_sync", "asc_sync_pipe", *ONE_PIPE, *SIMT)
_ROUND = {
    "V": "MTE2",
    "MTE2": "MTE3",
    "MTE3": "V",
    "M": "MTE1",
    "MTE1": "FIX",
    "FIX": "M",
    "S": "V",
}


class _Mutation(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("site", ctypes.c_uint32),
        ("op", ctypes.c_char * 40),
        ("pipe", ctypes.c_uint32),
        ("other", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("amount", ctypes.c_int32),
    ]


@dataclass(frozen=True, order=True)
class Mutant:
    """Every execution of ``op`` at line ``site`` (and, of a synchronisation, with these pipes and
    this id) changed by ``kind``; ``amount`` is by how much, or the new pipe."""

    site: int
    op: str
    kind: str
    pipe: str = ""
    other: str = ""
    id: int = ANY
    amount: int = 0

    def __str__(self) -> str:
        pipes = ", ".join(p for p in (self.pipe, self.other) if p)
        number = "" if self.id == ANY else f" id {self.id}"
        by = f" {self.amount:+d}" if self.amount and self.kind != "other_pipe" else ""
        return f"line {self.site}: {self.op}({pipes}{number}): {self.kind}{by}"


@contextmanager
def active(mutants: Sequence[Mutant]) -> Iterator[None]:
    """Launches inside the block execute these mutants."""
    if not mutants:
        yield
        return
    table = (_Mutation * len(mutants))(*map(_pack, mutants))
    install = toolchain.symbol("ak_set_mutations")
    install.argtypes, install.restype = [ctypes.c_void_p, ctypes.c_uint64], None
    if toolchain.symbol("ak_mutation_bytes")() != ctypes.sizeof(_Mutation):
        raise RuntimeError("emulator runtime: struct Mutation differs from mutants.py")
    install(table, len(mutants))
    try:
        yield
    finally:
        install(None, 0)


def _pack(m: Mutant) -> _Mutation:
    pipes = [records.PIPES.index(p) if p else ANY for p in (m.pipe, m.other)]
    return _Mutation(KINDS.index(m.kind), m.site, m.op.encode(), *pipes, m.id, m.amount)


def instruction(r: records.Record) -> Mutant | None:
    """The synchronisation instruction that made a record, as a mutant that leaves it out."""
    if r.name not in SYNC:
        return None
    if r.name in SIMT:
        return Mutant(r.line, r.name, "drop")
    if r.name == "asc_sync_notify":
        pipes = r.pipe, records.PIPES[r.arguments[0]]
    elif r.name == "asc_sync_wait":
        pipes = records.PIPES[r.arguments[0]], r.pipe
    else:
        pipes = r.pipe, "ALL"
    number = 0 if r.name in ("asc_sync", "asc_sync_pipe") else r.arguments[1]
    return Mutant(r.line, r.name, "drop", *pipes, number)


def synchronisation(trace: Iterable[records.Record]) -> list[Mutant]:
    """The mutants of every synchronisation instruction that the trace holds."""
    found: set[Mutant] = set()
    for drop in {instruction(r) for r in trace}:
        if drop is None:
            continue
        found.add(drop)
        if drop.op in SIMT or drop.op == "asc_sync_pipe":
            continue
        found |= {replace(drop, kind=kind) for kind in ("earlier", "later")}
        if drop.op == "asc_sync":
            continue
        found.add(replace(drop, kind="renumber", amount=1))
        if drop.op in ONE_PIPE:
            other = records.PIPES.index(_ROUND[drop.pipe])
            found.add(replace(drop, kind="other_pipe", amount=other))
        else:
            found.add(replace(drop, kind="swap_pipes"))
    return sorted(found)


COPIES = {
    "asc_copy_gm2ub_align": (
        "count",
        "bytes",
        "source",
        "target",
        "source_stride",
        "target_stride",
    ),
    "asc_copy_ub2gm_align": (
        "count",
        "bytes",
        "source",
        "target",
        "source_stride",
        "target_stride",
    ),
    "asc_copy_ub2l1": ("count", "bytes", "target", "source_stride", "target_stride"),
    "asc_copy_gm2l1_nd2nz": ("count", "bytes", "source", "source_stride"),
    "asc_copy_gm2l1_dn2nz": ("count", "bytes", "source", "source_stride"),
    "asc_copy_l12l0a": ("count", "bytes", "source_stride", "target_stride"),
    "asc_copy_l12l0b": ("count", "bytes", "source_stride", "target_stride"),
    "asc_copy_l12l0a_transpose": ("count", "bytes", "source_stride", "target_stride"),
    "asc_copy_l12l0b_transpose": ("count", "bytes", "source_stride", "target_stride"),
    "asc_mmad": ("count", "bytes"),
    "asc_copy_l0c2gm": ("count", "bytes", "source_stride", "target_stride"),
    "asc_copy_l0c2ub": ("count", "bytes", "source_stride", "target_stride"),
}
"""Fields that can be off by one, by instruction."""
LOADS = (
    "asc_copy_gm2ub_align",
    "asc_copy_gm2l1_nd2nz",
    "asc_copy_gm2l1_dn2nz",
    "asc_fill_l1",
    "asc_copy_l12l0a",
    "asc_copy_l12l0b",
    "asc_copy_ub2l1",
    "asc_copy_l0c2ub",
)
"""Instructions without which their target is undefined."""


def data(trace: Sequence[records.Record], element_bytes: int = 4) -> list[Mutant]:
    """Mutants of bounds (by one row or element, both ways), strides, masks and missing loads."""
    found: set[Mutant] = set()
    for r in trace:
        if r.name.startswith(("asc_create_mask_b", "asc_update_mask_b")):
            found |= {Mutant(r.line, r.name, "mask", amount=a) for a in (-1, 1)}
        if r.name in LOADS:
            found.add(Mutant(r.line, r.name, "drop"))
        for field in COPIES.get(r.name, ()):
            bytewise = "align" in r.name and field != "count"
            if "gm2l1" in r.name and field in ("source", "source_stride"):
                bytewise = True
            step = element_bytes if bytewise else 1
            if field == "target" or (r.name == "asc_copy_ub2gm_align" and field == "source"):
                step = 32 if "gm2ub" in r.name or field == "source" or "ub2l1" in r.name else step
            found |= {Mutant(r.line, r.name, field, amount=a) for a in (-step, step)}
    return sorted(found)
