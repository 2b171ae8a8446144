"""``python -m ep_comm simulate``: counts of a dispatch on many ranks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ascendkit.errors import bad_value
from ep_comm.checks import MAX_RANKS, nearest_multiple
from ep_comm.commands import given, show
from ep_comm.simulate import simulate

MOST_RANKS = 1 << 14
"""A matrix of counts has this many squared entries."""


def main(c: dict[str, Any]) -> int:
    """Print a row for every number of ranks and mode."""
    given.numbers(c, ranks=(1, MOST_RANKS), scaleup=(1, MAX_RANKS))
    for n in c["ranks"]:
        near = min(c["scaleup"], n)
        if n % near:
            raise bad_value("ranks", n, f"a multiple of scaleup {near}", nearest_multiple(n, near))
        experts = max(c["experts"], n)
        if experts % n:
            near = nearest_multiple(experts, n)
            raise bad_value("experts", experts, f"a multiple of ranks {n}, or fewer", near)
    found = [
        simulate(
            n, mode, scaleup_ranks=c["scaleup"], num_tokens=c["tokens"], hidden=c["hidden"],
            num_experts=c["experts"], num_topk=c["topk"], gate=c["gate"], sample=c["sample"],
            seed=c["seed"],
        )
        for n in c["ranks"] for mode in c["mode"]
    ]  # fmt: skip
    if c["output"] == "json":
        show.lines({"record": "ep_comm_simulated", "gate": c["gate"], **asdict(s)} for s in found)
        return 0
    show.table(
        f"counted, not timed: dispatch of {c['tokens']} tokens a rank, gate {c['gate']}",
        ("ranks", "mode", "copies", "expected", "network rows", "network MB", "node rows",
         "node MB", "peers", "hops", "rounds", "buffer GiB", "skew"),
        [(s.ranks, s.mode, f"{s.copies:.3f}", f"{s.expected:.3f}", f"{s.network_rows:,.0f}",
          f"{s.network_bytes / 1e6:,.1f}", f"{s.node_rows:,.0f}", f"{s.node_bytes / 1e6:,.1f}",
          f"{s.peers:.1f}", s.hops, s.rounds, show.gib(s.buffer_bytes), f"{s.received_skew:.2f}")
         for s in found],
    )  # fmt: skip
    return 0
