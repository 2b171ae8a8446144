"""How errors read: what we got, what we wanted, and the nearest legal value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(got: str, legal: Iterable[str]) -> str:
    """The closest legal spelling of ``got``; case, ``-`` and ``_`` do not count."""
    names = sorted(legal)
    folded = {_fold(n): n for n in reversed(names)}
    hit = difflib.get_close_matches(_fold(got), folded, n=1, cutoff=0.0)
    return folded[hit[0]] if hit else ""


def unknown(what: str, got: object, legal: Iterable[str]) -> ValueError:
    """A ValueError for a name that is not in a closed set."""
    names = sorted(legal)
    if not names:
        return ValueError(f"{what}: got {got!r}, but nothing is available")
    near = nearest(str(got), names)
    return ValueError(f"{what}: got {got!r}, wanted one of {', '.join(names)}; nearest: {near}")


def bad_value(what: str, got: object, wanted: str, legal: object = None) -> ValueError:
    """A ValueError that names the value, the rule, and the nearest value that obeys it."""
    tail = "" if legal is None else f"; nearest legal: {legal}"
    return ValueError(f"{what}: got {got!r}, wanted {wanted}{tail}")


def bad_type(what: str, got: object, wanted: str) -> TypeError:
    """A TypeError that names the type found and the type wanted."""
    return TypeError(f"{what}: got {type(got).__name__}, wanted {wanted}")


def _fold(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
