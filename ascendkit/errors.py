"""How errors read: what we got, what we wanted, and the nearest legal value."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

NEAR = 0.6
"""Share of letters in common from which a name is taken for a misspelling of another."""
PART = 3
"""Letters from which a name that is a part of another is near it."""


def nearest(got: str, legal: Iterable[str]) -> str:
    """The closest legal spelling of ``got``, or "" where none is near: a wrong hint costs more than
    none. Case, ``-`` and ``_`` do not count; of numbers, the closest value is near."""
    names = sorted(legal)
    folded = {_fold(n): n for n in reversed(names)}
    text = _fold(got)
    values = {n: v for n in names if (v := _number(n)) is not None}
    if (number := _number(got)) is not None and names and len(values) == len(names):
        return min(names, key=lambda n: abs(values[n] - number))
    # The last part of a dotted name stands for it.
    short = {f.rpartition(".")[2]: n for f, n in folded.items()}
    for spelled in (folded, short):
        if hit := difflib.get_close_matches(text, spelled, n=1, cutoff=NEAR):
            return spelled[hit[0]]
    inside = [n for n in folded if min(len(n), len(text)) >= PART and (n in text or text in n)]
    hit = difflib.get_close_matches(text, inside, n=1, cutoff=0.0)
    return folded[hit[0]] if hit else ""


def unknown(what: str, got: object, legal: Iterable[str]) -> ValueError:
    """A ValueError for a name that is not in a closed set."""
    names = sorted(legal)
    if not names:
        return ValueError(f"{what}: got {got!r}, but nothing is available")
    near = nearest(str(got), names)
    tail = f"; nearest: {near}" if near else ""
    return ValueError(f"{what}: got {got!r}, wanted one of {', '.join(names)}{tail}")


def bad_value(what: str, got: object, wanted: str, legal: object = None) -> ValueError:
    """A ValueError that names the value, the rule, and the nearest value that obeys it."""
    tail = "" if legal is None else f"; nearest legal: {legal}"
    return ValueError(f"{what}: got {got!r}, wanted {wanted}{tail}")


def bad_type(what: str, got: object, wanted: str) -> TypeError:
    """A TypeError that names the type found and the type wanted."""
    return TypeError(f"{what}: got {type(got).__name__}, wanted {wanted}")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _fold(name: str) -> str:
    return name.lower().replace("-", "_")
