"""Expected traffic of expert-parallel routing: how many ranks or nodes a token reaches.

Balanced routing: every set of experts the gate may choose is equally likely. A token goes to a rank
once, however many of its experts live there (dedup).
"""

from __future__ import annotations

from math import comb


def expected_parts(
    num_experts: int, num_topk: int, parts: int, num_groups: int = 1, topk_groups: int = 1
) -> float:
    """Expected distinct parts (ranks, or nodes) that hold one of a token's experts.

    Args:
        num_experts, num_topk: E and k.
        parts: P equal shares of the experts, contiguous.
        num_groups, topk_groups: group-limited gate; 1, 1 without a limit.

    Without a limit this is ``P * (1 - C(E - E/P, k) / C(E, k))``. With one, experts come from
    ``topk_groups`` of ``num_groups`` groups; a part may hold several groups or a share of one.
    """
    share = num_experts // parts
    if num_groups == topk_groups:
        return parts * (1 - comb(num_experts - share, num_topk) / comb(num_experts, num_topk))
    per_group = num_experts // num_groups
    pool = per_group * topk_groups
    if share <= per_group:
        hit = 1 - comb(pool - share, num_topk) / comb(pool, num_topk)
        return parts * hit * topk_groups / num_groups
    own = share // per_group
    missed = sum(
        comb(own, j)
        * comb(num_groups - own, topk_groups - j)
        / comb(num_groups, topk_groups)
        * comb(pool - j * per_group, num_topk)
        / comb(pool, num_topk)
        for j in range(min(own, topk_groups) + 1)
    )
    return parts * (1 - missed)


def traffic(
    num_experts: int,
    num_topk: int,
    ep: int,
    scaleup_ranks: int,
    num_groups: int = 1,
    topk_groups: int = 1,
) -> dict[str, float]:
    """Copies of one token that leave this rank, by link.

    Inside one scale-up domain a token goes straight to each rank that needs it. Across domains it
    crosses the scale-out network once per domain and is forwarded there over scale-up.
    """
    groups = (num_groups, topk_groups)
    ranks = expected_parts(num_experts, num_topk, ep, *groups)
    domain = min(ep, scaleup_ranks)
    domains = max(ep // domain, 1)
    if domains == 1:
        return {"ranks": ranks, "scaleup": ranks * (1 - 1 / ep), "scaleout": 0.0}
    nodes = expected_parts(num_experts, num_topk, domains, *groups)
    return {
        "ranks": ranks,
        "scaleup": ranks * (1 - 1 / domain),
        "scaleout": nodes * (1 - 1 / domains),
    }
