"""What a source text says of capacity: a lower bound.

Only copies whose address and size are constants can be read off a text, and it has no names of
buffers and no live ranges: two copies to the same bytes are one buffer, or two at different times.
Such overlaps are shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascendkit.emulator import source
from ascendkit.emulator.findings.fits import Fit, Held, Memory, capacities
from ascendkit.emulator.linemap import Origin

LOWER = "lower bound: ends of copies whose address and size are constants; no live ranges"
_SIZES = {"float": 4, "half": 2, "bfloat16_t": 2, "int64_t": 8, "bool": 1} | {
    f"{u}int{8 * n}_t": n for n in (1, 2, 4, 8) for u in ("", "u")
}
_BASE = re.compile(r"__ubuf__ (\w+) ?\* ?(\w+) = \(__ubuf__ \w+ ?\*\) ?(\d+);")
_COPY = re.compile(
    r"asc_copy_(?:gm2ub|ub2gm)_align\(.*?\(*&\(*"
    r"(?:\(\(__ubuf__ (\w+) ?\*\)(\w+)\)|(\w+))\[(\d+)\]\)*, (?:\(__gm__.*?, )?1, (\d+),"
)


def of_source(text: str) -> tuple[Fit, ...]:
    """The least that each kernel of a text needs of the unified buffer.

    Raises:
        SourceError: not AscendC that the emulator reads.
    """
    found = []
    for kernel in source.kernels(text).values():
        simt, limits = "__simt_vf__" in text, capacities("__simt_vf__" in text)
        copies = _copies(text)
        memories: tuple[Memory, ...] = ()
        if copies:
            end = max(c.offset + c.bytes for c in copies)
            over = {
                chip: f"a copy ends at {end}" for chip, sizes in limits.items() if end > sizes["UB"]
            }
            memories = (Memory("UB", end, None, (), end, over),)
        found.append(
            Fit(
                kernel.name,
                simt,
                copies,
                memories,
                limits,
                bound=LOWER,
                overlaps=_overlaps(copies),
            )
        )
    return tuple(found)


def _copies(text: str) -> tuple[Held, ...]:
    """Ranges of the unified buffer that copies touch, at the first line that does."""
    bases: dict[str, tuple[str, int]] = {}
    found: dict[tuple[int, int], int] = {}
    for number, row in enumerate(text.splitlines(), 1):
        for kind, name, at in _BASE.findall(row):
            bases[name] = kind, int(at)
        match = _COPY.search(row)
        if match is None:
            continue
        cast, named, bare, index, size = match.groups()
        kind, base = bases.get(named or bare, ("", -1))
        kind = cast or kind
        if base >= 0 and kind in _SIZES:
            found.setdefault((base + int(index) * _SIZES[kind], int(size)), number)
    return tuple(
        Held(f"copy of line {line}", "UB", size, 1, offset, here := Origin("", line), here)
        for (offset, size), line in sorted(found.items())
    )


def _overlaps(copies: Sequence[Held]) -> tuple[str, ...]:
    """Pairs of ranges that share bytes; the same range twice is no news."""
    return tuple(
        f"{a.name} [{a.offset}, {a.offset + a.bytes}) and {b.name} [{b.offset}, "
        f"{b.offset + b.bytes}) share {min(a.offset + a.bytes, b.offset + b.bytes) - b.offset} "
        "bytes: one buffer, or two at different times"
        for i, a in enumerate(copies)
        for b in copies[i + 1 :]
        if b.offset < a.offset + a.bytes
    )
