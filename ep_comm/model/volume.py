"""How much one rank sends and sums, by link, for balanced routing."""

from __future__ import annotations

from dataclasses import dataclass

from ascendkit.errors import bad_value, unknown
from ascendkit.formats import width
from ep_comm.checks import nearest_divisor
from ep_comm.routing import expected_parts

PARTS = ("dispatch", "combine")


@dataclass(frozen=True)
class Volume:
    """One rank's share of one call; bytes.

    Args:
        copies: expected distinct ranks of a token, D.
        nodes: expected distinct nodes, S.
        row: bytes of a row.
        scaleup, scaleout: sent over each link; what stays on the rank (node) is not.
        logical_scaleup, logical_scaleout: the same with what stays.
        summed: read to form partial sums on the experts' ranks, beyond one row a copy (combine).
        peers: ranks it exchanges with.
    """

    copies: float
    nodes: float
    row: float
    scaleup: float
    scaleout: float
    logical_scaleup: float
    logical_scaleout: float
    summed: float
    peers: int

    def logical(self, link: str) -> float:
        """Bytes as benchmarks count them."""
        if link not in ("scaleup", "scaleout"):
            raise unknown("link", link, ("scaleup", "scaleout"))
        return self.logical_scaleup if link == "scaleup" else self.logical_scaleout


def row_bytes(part: str, hidden: int, dtype: str = "") -> float:
    """Bytes of a row: FP8 with a float32 scale per 128 values for dispatch, bf16 for combine."""
    if part not in PARTS:
        raise unknown("part", part, PARTS)
    return hidden * width(dtype or ("fp8_1x128" if part == "dispatch" else "bf16"))


def volume(
    part: str,
    num_tokens: int,
    hidden: int,
    num_experts: int,
    num_topk: int,
    ranks: int,
    scaleup_ranks: int,
    dtype: str = "",
    limited_to_nodes: int = 0,
    dedup: bool = True,
) -> Volume:
    """Volume of ``dispatch`` or ``combine``.

    Args:
        scaleup_ranks: of one node; ranks of one node need no network.
        dtype: of a row; FP8 with scales for dispatch, bf16 for combine by default.
        limited_to_nodes: most nodes the gate lets a token reach; 0 for no limit.
        dedup: False sends a row for every choice (low-latency kernels).
    """
    if ranks < 1 or num_experts % ranks:
        legal = nearest_divisor(ranks, num_experts)
        raise bad_value("ranks", ranks, f"a divisor of num_experts {num_experts}", legal)
    near = min(ranks, scaleup_ranks)
    if ranks % near:
        raise bad_value("ranks", ranks, f"a multiple of scaleup_ranks {near}", near)
    count = ranks // near
    limit = (count, min(count, limited_to_nodes)) if limited_to_nodes and count > 1 else (1, 1)
    copies = expected_parts(num_experts, num_topk, ranks, *limit)
    nodes = expected_parts(num_experts, num_topk, count, *limit)
    row = row_bytes(part, hidden, dtype)
    if not dedup:
        sent = num_tokens * num_topk * row
        out = sent * (1 - near / ranks)
        up = sent * (1 - 1 / ranks) - out
        return Volume(num_topk, nodes, row, up, out, sent, sent, 0.0, ranks)
    all_up, all_out = num_tokens * copies * row, num_tokens * nodes * row
    return Volume(
        copies,
        nodes,
        row,
        all_up * (1 - 1 / near),
        all_out * (1 - 1 / count),
        all_up,
        all_out if count > 1 else 0.0,
        num_tokens * (num_topk - copies) * row if part == "combine" else 0.0,
        ranks,
    )
