"""The families of vector instructions: one bank, so one compilation, each."""

from __future__ import annotations

from functools import cache

from tests.emulator.golden import (
    across,
    arith,
    casts,
    compare,
    indexed,
    memory,
    merged,
    predicates,
)
from tests.emulator.golden.case import Case
from tests.emulator.harness import Bank

FAMILIES: dict[str, list[Case]] = {
    "arith": arith.CASES,
    "compare": compare.CASES,
    "across": across.CASES,
    "predicates": predicates.CASES,
    "memory": [*memory.CASES, *indexed.CASES],
    "merged": merged.CASES,
    "casts from float32": casts.FROM_F32,
    "casts": casts.FROM_OTHERS,
}

# What a kind of corruption cannot change, and why; everything else must turn a golden red.
UNSEEN: dict[str, dict[int, str]] = {
    "asc_reduce_sum": {3: "lane 1 is zero"},
    "asc_pack_to_high": {3: "lane 1 lies in the half that is zero"},
    "asc_pack_to_high.predicate": {3: "bit 1 lies in the half that is clear"},
    "asc_unpack_lower.predicate": {3: "odd bits are clear"},
    "asc_unpack_upper.predicate": {3: "odd bits are clear"},
    "asc_storealign_pack.predicate": {3: "odd bits are not stored"},
    "asc_loadalign_brc_elem": {4: "all lanes are equal"},
    "asc_loadalign_brc_elem_postupdate": {4: "all lanes are equal"},
    **{
        f"asc_loadalign_unpack{n}{end}": {3: "lane 1 is the zero extension"}
        for n in ("", "4")
        for end in ("", "_postupdate")
    },
    **{
        f"asc_update_addr_reg_b{w}": {3: "one number, no lanes", 4: "one number, no lanes"}
        for w in (8, 16, 32)
    },
    "asc_storealign_1st": {3: "only lane 0 is stored", 4: "only lane 0 is stored"},
    "asc_storealign_pack": {2: "the high half is not stored"},
    "asc_storealign_pack_quarter": {2: "the high bytes are not stored"},
    "asc_mem_bar": dict.fromkeys((1, 2, 3, 4), "orders accesses, produces nothing"),
}


def members() -> list[tuple[str, str]]:
    """(family, instruction) of every vector golden."""
    return [
        (family, name)
        for family, cases in FAMILIES.items()
        for name in dict.fromkeys(c.name for c in cases)
    ]


@cache
def bank(family: str) -> Bank:
    """The family's snippets, compiled on first run."""
    return Bank([case.snippet for case in FAMILIES[family]])
