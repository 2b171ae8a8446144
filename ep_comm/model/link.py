"""Two constants of a link from measured transfers."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def link_constants(points: Sequence[tuple[float, float]]) -> tuple[float, float, list[float]]:
    """Rate (GB/s) and start (us) of a link from (wire bytes, us), and the error of each point.

    Least squares of relative errors; the start is held at 0 where the fit would make it or the rate
    negative.
    """
    if len(points) < 2:
        raise ValueError(f"link_constants: got {len(points)} points, wanted at least 2")
    rows = [(b / 1e3 / t, 1 / t) for b, t in points]
    aa, ab, bb = (sum(f(r) for r in rows) for f in (_square(0), _cross, _square(1)))
    a, b = sum(r[0] for r in rows), sum(r[1] for r in rows)
    det = aa * bb - ab * ab
    inverse, start = (a * bb - b * ab) / det, (aa * b - ab * a) / det
    if start < 0 or inverse <= 0:
        inverse, start = a / aa, 0.0
    errors = [(start + w / 1e3 * inverse) / t - 1 for w, t in points]
    return 1 / inverse, start, errors


def _square(i: int) -> Callable[[tuple[float, float]], float]:
    return lambda r: r[i] * r[i]


def _cross(r: tuple[float, float]) -> float:
    return r[0] * r[1]
