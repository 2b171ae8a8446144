"""Dispatch on more ranks than this machine has: messages, bytes, steps and memory, counted.

The routing of every rank is drawn, and owners and copies of its choices are found by the code that
a dispatch uses, with few tokens a rank; counts are then scaled to the tokens asked for. Nothing
here is a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ascendkit.errors import bad_value
from ascendkit.testing import routing, sub_seed
from ep_comm.checks import nearest_multiple
from ep_comm.model.volume import row_bytes
from ep_comm.routing import expected_parts
from ep_comm.size import buffer_size

if TYPE_CHECKING:
    import torch

MODES = ("direct", "hybrid")
CHUNK = 32
"""Ranks drawn at a time."""


@dataclass(frozen=True)
class Simulated:
    """One configuration, averages over ranks unless said otherwise.

    Args:
        ranks, mode: EP, and how rows travel.
        copies: distinct ranks of a token; ``expected`` by the formula for balanced routing.
        network_rows, network_bytes: of one rank to other nodes.
        node_rows, node_bytes: of one rank inside its node, forwarded rows included.
        peers: ranks a rank is expected to send at least one row to, itself included.
        hops: exchanges a row goes through.
        rounds: times all ranks (of a hop's group) wait for each other, the call's check included.
        buffer_bytes: memory of a rank by the formulas of the buffer.
        received_skew: largest over mean of the rows a rank receives, in the sample; a small sample
            overstates it.
    """

    ranks: int
    mode: str
    copies: float
    expected: float
    network_rows: float
    network_bytes: float
    node_rows: float
    node_bytes: float
    peers: float
    hops: int
    rounds: int
    buffer_bytes: int
    received_skew: float


def simulate(
    ranks: int,
    mode: str = "direct",
    *,
    scaleup_ranks: int = 8,
    num_tokens: int = 4096,
    hidden: int = 7168,
    num_experts: int = 256,
    num_topk: int = 8,
    gate: str = "uniform",
    sample: int = 16,
    seed: int = 0,
) -> Simulated:
    """Count one dispatch.

    Args:
        scaleup_ranks: of a node.
        num_tokens: of a rank.
        num_experts: raised to ``ranks`` where there are fewer.
        gate: a kind of :func:`ascendkit.testing.routing`.
        sample: tokens of a rank that are drawn.
    """
    import torch

    if mode not in MODES:
        raise bad_value("mode", mode, " or ".join(MODES))
    near = min(scaleup_ranks, ranks)
    if ranks < 1 or ranks % near:
        raise bad_value(
            "ranks", ranks, f"a multiple of scaleup_ranks {near}", nearest_multiple(ranks, near)
        )
    experts = max(num_experts, ranks)
    if experts % ranks:
        near = nearest_multiple(experts, ranks)
        raise bad_value("num_experts", experts, f"a multiple of {ranks}", near)
    for name, got in (("sample", sample), ("num_topk", num_topk)):
        if got < 1:
            raise bad_value(name, got, "at least 1", 1)
    nodes = ranks // near
    sent, reached = _drawn(ranks, nodes, experts, num_topk, gate, sample, seed)
    scale = num_tokens / sample
    home = torch.arange(ranks) // near
    inside = torch.zeros_like(sent, dtype=torch.bool)
    inside[home[:, None] == home[None, :]] = True
    if mode == "direct" or nodes == 1:
        out = sent[~inside].sum().item()
        up = sent[inside].sum().item() - sent.diagonal().sum().item()
        peers = _met(sent, sample, num_tokens)
        hops, hybrid = 1, False
    else:
        out = reached.sum().item() - reached[torch.arange(ranks), home].sum().item()
        # The rank at the sender's place in the node forwards, and keeps what is its own.
        place = torch.arange(ranks) % near
        kept = sent[place[:, None] == place[None, :]].sum().item()
        up = sent.sum().item() - kept
        peers = _met(reached, sample, num_tokens) + near - 1
        hops, hybrid = 2, True
    row = row_bytes("dispatch", hidden)
    size = buffer_size(
        num_tokens, hidden, num_topk, scaleout_ranks=nodes, scaleup_ranks=near,
        allow_hybrid_mode=hybrid,
    )  # fmt: skip
    got = sent.sum(0).double()
    return Simulated(
        ranks, mode, sent.sum().item() / ranks / sample,
        expected_parts(experts, num_topk, ranks),
        out * scale / ranks, out * scale / ranks * row,
        up * scale / ranks, up * scale / ranks * row,
        peers, hops, 1 + 2 * hops, size.num_bytes, float(got.max() / got.mean()),
    )  # fmt: skip


@lru_cache(maxsize=2)
def _drawn(
    ranks: int, nodes: int, experts: int, num_topk: int, gate: str, sample: int, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows from every rank to every rank, and to every node."""
    import torch

    from ep_comm.hop import last_on_rank
    from ep_comm.layout.reference import owner

    sent = torch.zeros((ranks, ranks), dtype=torch.int64)
    reached = torch.zeros((ranks, nodes), dtype=torch.int64)
    for begin in range(0, ranks, CHUNK):
        sources = min(CHUNK, ranks - begin)
        idx = routing(
            gate, sources * sample, num_topk, experts, sub_seed(seed, begin), num_ranks=ranks
        )
        source = torch.arange(sources).repeat_interleave(sample)[:, None].expand_as(idx)
        for table, parts in ((sent, ranks), (reached, nodes)):
            to = owner(idx, experts // parts)
            last = last_on_rank(to)
            pairs = (source * parts + to)[last].bincount(minlength=sources * parts)
            table[begin : begin + sources] = pairs.view(sources, parts)
    return sent, reached


def _met(rows: torch.Tensor, sample: int, num_tokens: int) -> float:
    """Expected receivers of at least one of ``num_tokens`` tokens."""
    share = rows.double().mean(0) / sample
    return float((1 - (1 - share.clamp(max=1)) ** num_tokens).sum())
