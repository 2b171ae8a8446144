"""Rules a routing must keep, from float64 mathematics: they judge the references of the gates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

LARGEST = 3.4028234663852886e38
NEAR = 2e-6
"""Relative error of a score, and room for ranks that differ by less."""


def exact_scores(row: np.ndarray, scoring: str) -> np.ndarray:
    """Scores of one token in float64."""
    x = np.nan_to_num(row.astype(np.float64), nan=-LARGEST, posinf=LARGEST, neginf=-LARGEST)
    with np.errstate(over="ignore", under="ignore"):
        if scoring == "sigmoid":
            e = np.exp(-np.abs(x))
            return np.where(x > 0, 1.0, e) / (1 + e)
        if scoring == "softmax":
            e = np.exp(x - x.max())
            return e / e.sum()
        return np.sqrt(np.logaddexp(0.0, x))


def broken(
    result: tuple[Any, ...],
    logits: np.ndarray,
    topk: int,
    shared: int,
    scale: float,
    ep_rank: int,
    scoring: str,
    *,
    mask: Any,
    bias: Any,
    image_bias: Any = None,
    image_token_mask: Any = None,
    fix_routing_mask: Any,
    to_physical_map: Any,
    logical_count: Any,
    given: Any,
    force_random: Any = None,
    groups: tuple[int, int] = (1, 1),
    local: Any = None,
) -> Iterator[str]:
    """A sentence for every rule that ``result`` breaks.

    Args:
        result: (topk_idx, topk_weights, unmapped_topk_idx or None, scores or None) after the call.
        given: ``unmapped_topk_idx`` before it.
        local: what became of a physical index afterwards, a function.
    """
    idx, weights, unmapped, scores = result
    experts = logits.shape[1]
    total = experts + shared
    if logical_count is not None:
        total = int(np.clip(logical_count, 1, to_physical_map.shape[1]).sum())
    for t, row in enumerate(logits):
        if mask is not None and not mask[t]:
            quiet = (idx[t] == -1).all() and (weights[t] == 0).all()
            quiet &= unmapped is None or bool((unmapped[t] == -1).all())
            quiet &= scores is None or not scores[t].any()
            if not quiet:
                yield f"token {t} is masked, yet has experts"
            continue
        if force_random is not None and force_random[t]:
            fine = len(set(idx[t])) == idx.shape[1] and 0 <= idx[t].min() <= idx[t].max() < total
            fine &= 0 < weights[t].min() <= weights[t].max() <= 1
            fine &= unmapped is None or bool((unmapped[t] == -1).all())
            fine &= scores is None or not scores[t].any()
            if not fine:
                yield f"token {t} at random: {idx[t]}, {weights[t]}"
            continue
        u = exact_scores(row, scoring)
        if scores is not None and not np.allclose(scores[t], u, rtol=1e-4, atol=2e-38):
            yield f"token {t}: scores {scores[t]}, wanted {u}"
        known = unmapped[t] if unmapped is not None else None
        if known is None and to_physical_map is None and local is None:
            known = idx[t, :topk]
        if known is None:
            continue
        if fix_routing_mask is not None and fix_routing_mask[t]:
            want = [e if 0 <= e < experts else -1 for e in given[t]]
            if list(known) != want:
                yield f"token {t}: experts {known}, fixed ones are {want}"
        else:
            ranking = (
                np.clip(row.astype(np.float64), -LARGEST, LARGEST) if scoring == "softmax" else u
            )
            if image_token_mask is not None and image_token_mask[t]:
                ranking = ranking + image_bias
            elif bias is not None:
                ranking = ranking + bias
            yield from _ordered(
                t,
                known,
                np.nan_to_num(ranking, nan=-math.inf, posinf=math.inf, neginf=-math.inf),
                row,
                bias is None and image_bias is None,
                groups,
            )
        chosen = np.where(known >= 0, u[np.maximum(known, 0)], 0.0)
        want = chosen / (chosen.sum() + 1e-20) * scale
        if not np.allclose(weights[t, :topk], want, rtol=1e-4, atol=1e-30):
            yield f"token {t}: weights {weights[t, :topk]}, wanted {want}"
        if (weights[t, topk:] != 1).any():
            yield f"token {t}: a shared expert's weight is not 1"
        logical = [*map(int, known), *range(experts, experts + shared)]
        for j, e in enumerate(logical):
            if to_physical_map is not None and e >= 0:
                count = min(max(int(logical_count[e]), 1), to_physical_map.shape[1])
                e = int(to_physical_map[e, (ep_rank + t * 23333) % count])
            if local is not None:
                e = local(e)
            if idx[t, j] != e:
                yield f"token {t}, slot {j}: expert {idx[t, j]}, wanted {e}"


def _ordered(
    t: int,
    known: np.ndarray,
    ranking: np.ndarray,
    row: np.ndarray,
    plain: bool,
    groups: tuple[int, int],
) -> Iterator[str]:
    """Best first, none left out, equals by index; -inf takes what is left."""
    if len(set(known)) != len(known) or not (known.min() >= 0 and known.max() < len(ranking)):
        yield f"token {t}: {known} are not different experts"
        return
    if groups[0] != groups[1]:
        per = len(ranking) // groups[0]
        # Where the groups hold fewer experts than wanted, any others follow.
        known = known[: groups[1] * per]
        two = np.sort(ranking.reshape(groups[0], per))[:, -2:].sum(1)
        cut = np.sort(two)[::-1][groups[1] - 1]
        used = {int(e) // per for e in known}
        if len(used) > groups[1] or any(two[g] < cut - NEAR * (1 + abs(cut)) for g in used):
            yield f"token {t}: groups {used} of sums {two}"
        allowed = np.isin(np.arange(len(ranking)) // per, list(used))
        ranking = np.where(allowed, ranking, -math.inf)
    found = ranking[known]
    room = NEAR * (1 + np.abs(np.where(np.isfinite(found), found, 0.0)))
    if (found[1:] > found[:-1] + room[1:]).any():
        yield f"token {t}: {known} are not in order"
    rest = np.delete(ranking, known)
    if len(rest) and np.isfinite(rest.max()) and rest.max() > found[-1] + room[-1]:
        yield f"token {t}: {known} leave out expert of rank {rest.max()}"
    if plain and groups[0] == groups[1]:
        for a, b in itertools.pairwise(known):
            if row[a] == row[b] and a > b:
                yield f"token {t}: experts {a} and {b} are equal, the smaller comes first"
