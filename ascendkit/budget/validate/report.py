"""The validation as text (misses first) and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ascendkit.budget.validate.score import (
    LEAST_GROUPS,
    LEAST_POINTS,
    Result,
    Score,
    digest,
    groups,
    rank_test,
    ratio_test,
    score,
    validate,
)

__all__ = ["as_json", "as_text", "validate"]


def as_text(results: list[Result]) -> str:
    """A Markdown document; the same points and rows give the same bytes."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: list[Result]) -> Iterator[str]:
    claimed = [r for r in results if r.claimed]
    others = [r for r in results if r.predicted is not None and not r.claimed]
    absent = [r for r in results if r.predicted is None]
    misses = sorted(
        (r for r in claimed if abs(r.error or 0) > 0.1), key=lambda r: -abs(r.error or 0)
    )
    hits = [r for r in claimed if r not in misses]
    yield "# Published points, predicted"
    yield ""
    yield f"Points file {digest()}; command `python -m ascendkit.budget action=validate`."
    yield (
        "Errors are predicted over measured less one. Coverage is the share of the time that is"
        " measured (M), published (P) or emulated (E); below 80 % a point is not claimed."
    )
    yield from _score_lines(results, claimed)
    yield from _table("Claimed, off by more than 10 %", misses)
    yield from _table("Claimed, within 10 %", hits)
    yield from _table("Not claimed: transferred or assumed for more than 20 % of the time", others)
    yield from _ratios(results)
    yield ""
    yield "## Not predicted"
    yield ""
    yield "| point | group | why |"
    yield "|---|---|---|"
    for r in absent:
        yield f"| {r.point.id} | {r.point.group} | {r.reason} |"
    yield ""
    yield "## Assumed where a source is silent"
    yield ""
    for r in results:
        if r.point.assumed:
            yield f"- {r.point.id}: {r.point.assumed}"


def _score_lines(results: list[Result], claimed: list[Result]) -> Iterator[str]:
    held = groups(claimed)
    yield ""
    yield "## Score"
    yield ""
    enough = len(claimed) >= LEAST_POINTS and len(held) >= LEAST_GROUPS
    if not enough:
        yield (
            f"No score: {len(claimed)} points in {len(held)} groups are claimed, wanted"
            f" {LEAST_POINTS} in {LEAST_GROUPS}."
        )
    else:
        per_group = [score(members) for members in held.values()]
        mean = sum(s.within_10 for s in per_group) / len(per_group)
        mean_20 = sum(s.within_20 for s in per_group) / len(per_group)
        middle = sum(s.median for s in per_group) / len(per_group)
        whole = score(claimed)
        yield (
            f"Mean over {len(held)} groups of {len(claimed)} claimed points: {mean:.0%} within 10 %"
            f" (aim 70 %), {mean_20:.0%} within 20 %, median error {middle:.1%}."
        )
        yield (
            f"All claimed points alike: {whole.within_10:.0%} within 10 %,"
            f" {whole.within_20:.0%} within 20 %, median {whole.median:.1%};"
            f" {sum(r.in_band for r in claimed) / len(claimed):.0%} inside their p10 to p90."
        )
        right, total = rank_test(claimed)
        yield f"Rank test, claimed pairs: {_share(right, total)} ordered as measured (aim 95 %)."
    right, total = rank_test(results)
    yield f"Rank test, every predicted pair: {_share(right, total)}."
    predicted = [r for r in results if r.predicted is not None]
    of = f"{len(predicted)} predicted of {len(results)} points"
    yield f"Coverage: {len(claimed)} claimed of {of}."
    yield ""
    yield (
        "| group | predicted | claimed | median error, claimed | within 10 % | within 20 % |"
        " median error, all |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name, members in groups(results).items():
        got = [r for r in members if r.predicted is not None and r.point.role != "calibration"]
        if got:
            s, every = score([r for r in members if r.claimed]), score(got)
            yield (
                f"| {name} | {len(got)} | {s.n} | {_percent(s.median)} | {_percent(s.within_10)} |"
                f" {_percent(s.within_20)} | {_percent(every.median)} |"
            )
    worst = sorted(claimed, key=lambda r: -abs(r.error or 0))[:5]
    yield ""
    yield "Worst five: " + ", ".join(f"{r.point.id} {r.error:+.0%}" for r in worst) + "."


def _share(right: int, total: int) -> str:
    return f"{right} of {total} ({right / total:.0%})" if total else "no pairs"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0%}"


def _table(title: str, results: list[Result]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    if not results:
        yield "None."
        return
    yield (
        "| point | group | metric | measured | predicted | p10 to p90 | error | coverage | origin |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for r in results:
        origin = " ".join(f"{k} {v:.0%}" for k, v in r.shares if v >= 0.005)
        role = " (calibration)" if r.point.role == "calibration" else ""
        yield (
            f"| {r.point.id}{role} | {r.point.group} | {r.point.metric} | {r.point.measured:.5g} |"
            f" {_bound(r)}{r.predicted:.4g} | {_band(r)} | {r.error:+.1%} |"
            f" {r.covered:.0%} | {origin} |"
        )


def _bound(r: Result) -> str:
    """What a missing rate makes of the figure: a time is at least that, a rate at most."""
    return "" if not r.missing else ">= " if math.isinf(r.high) else "<= "


def _band(r: Result) -> str:
    low = "unknown" if r.missing and not r.low else f"{r.low:.4g}"
    return f"{low} to {'unknown' if math.isinf(r.high) else f'{r.high:.4g}'}"


def _ratios(results: list[Result]) -> Iterator[str]:
    yield ""
    yield "## Ratios"
    yield ""
    yield "| what | measured | predicted | error |"
    yield "|---|---|---|---|"
    for name, measured, predicted in ratio_test(results):
        yield f"| {name} | {measured:.3f} | {predicted:.3f} | {predicted / measured - 1:+.1%} |"


def as_json(results: list[Result]) -> dict[str, Any]:
    """Everything as plain containers."""
    claimed = [r for r in results if r.claimed]
    enough = len(claimed) >= LEAST_POINTS and len(groups(claimed)) >= LEAST_GROUPS
    return {
        "schema": "ascendkit.budget.validation.v1",
        "points_sha": digest(),
        "score": _plain(score(claimed)) if enough else None,
        "rank": dict(zip(("right", "pairs"), rank_test(claimed), strict=True)),
        "groups": {n: _plain(score(rs)) for n, rs in groups(claimed).items()},
        "points": [
            {
                "id": r.point.id, "role": r.point.role, "group": r.point.group,
                "metric": r.point.metric, "measured": r.point.measured, "predicted": r.predicted,
                "p10": None if r.missing and not r.low else r.low,
                "p90": None if math.isinf(r.high) else r.high,
                "missing": list(r.missing), "error": r.error, "marks": dict(r.shares),
                "claimed": r.claimed, "reason": r.reason, "assumed": r.point.assumed,
            }
            for r in results
        ],
        "ratios": [
            {"what": n, "measured": a, "predicted": b} for n, a, b in ratio_test(results)
        ],
    }  # fmt: skip


def _plain(s: Score) -> dict[str, float | None]:
    return {
        "n": s.n,
        **{k: None if math.isnan(v) else v for k, v in
           (("median", s.median), ("within_10", s.within_10), ("within_20", s.within_20))},
    }  # fmt: skip
