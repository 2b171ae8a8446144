"""How many bytes a buffer needs, every term by name.

Formulas of DeepEP 2.5.0: every receive slot exists for the worst case (each source may send all its
tokens), so nothing overflows and nothing is dropped. Other revisions count differently.
"""

from __future__ import annotations

from dataclasses import dataclass

from ascendkit.errors import bad_value

PART_ALIGN, RECORD_ALIGN, BUFFER_ALIGN = 32, 64, 2 << 20
"""Bytes: parts of a record, a record, a buffer."""
CHANNELS = 1280
"""Most channels of hybrid mode: 8 an SM, 160 SMs. An earlier tree counted 1024."""
SIZING_TOPK = 32
"""Choices assumed where the caller does not say."""
REVISION = "DeepEP 2.5.0"


@dataclass(frozen=True)
class Term:
    """``records`` records of ``record_bytes`` each."""

    what: str
    formula: str
    records: int
    record_bytes: int

    @property
    def bytes(self) -> int:
        """Bytes of the term."""
        return self.records * self.record_bytes


@dataclass(frozen=True)
class Size:
    """Bytes of a buffer: the larger of what dispatch and combine need.

    Args:
        dispatch, combine: terms of each.
    """

    dispatch: tuple[Term, ...]
    combine: tuple[Term, ...]

    @property
    def num_bytes(self) -> int:
        """Total, a multiple of 2 MiB."""
        return align(max(total(self.dispatch), total(self.combine)), BUFFER_ALIGN)


def align(value: int, to: int) -> int:
    """``value`` rounded up to a multiple of ``to``."""
    return -(-value // to) * to


def total(terms: tuple[Term, ...]) -> int:
    """Bytes of all terms."""
    return sum(t.bytes for t in terms)


def dispatch_record(hidden: int, num_topk: int, use_fp8: bool) -> int:
    """Bytes of one token on its way to experts: x, scales, choices, weights, source, list."""
    packs = align(hidden, 32) // 32 if use_fp8 else 0
    parts = (hidden * (1 if use_fp8 else 2), 4 * packs, 4 * num_topk, 4 * num_topk, 4, 4 * num_topk)
    return align(sum(align(p, PART_ALIGN) for p in parts), RECORD_ALIGN)


def combine_record(hidden: int, num_topk: int) -> int:
    """Bytes of one row on its way back: x in bf16, choices, weights."""
    parts = (2 * hidden, 4 * num_topk, 4 * num_topk)
    return align(sum(align(p, PART_ALIGN) for p in parts), RECORD_ALIGN)


def buffer_size(
    num_max_tokens_per_rank: int,
    hidden: int,
    num_topk: int = 0,
    *,
    scaleout_ranks: int = 1,
    scaleup_ranks: int = 1,
    use_fp8_dispatch: bool = False,
    allow_hybrid_mode: bool = True,
    allow_multiple_reduction: bool = True,
    scaleup_is_nvlink: bool = True,
    channels: int = CHANNELS,
) -> Size:
    """Size of an EPBuffer.

    Args:
        num_max_tokens_per_rank, hidden: T and H.
        num_topk: k; 0 sizes for 32.
        scaleout_ranks, scaleup_ranks: SO nodes of SU ranks.
        use_fp8_dispatch: rows are FP8 with scales instead of bf16.
        allow_hybrid_mode: where SO > 1, forward inside the node instead of sending to every rank.
        allow_multiple_reduction: partial sums before rows travel back.
        channels: of hybrid mode.
        scaleup_is_nvlink: peers of a node are written by stores, which needs no send slots.

    Raises:
        ValueError: a size below 1, or more choices than 32.
    """
    for name, got in (
        ("num_max_tokens_per_rank", num_max_tokens_per_rank),
        ("hidden", hidden),
        ("scaleout_ranks", scaleout_ranks),
        ("scaleup_ranks", scaleup_ranks),
    ):
        if got < 1:
            raise bad_value(name, got, "at least 1", 1)
    if not 0 <= num_topk <= SIZING_TOPK:
        raise bad_value("num_topk", num_topk, f"0 to {SIZING_TOPK}", SIZING_TOPK)
    k = num_topk or SIZING_TOPK
    d, c = dispatch_record(hidden, k, use_fp8_dispatch), combine_record(hidden, k)
    t, so, su = num_max_tokens_per_rank, scaleout_ranks, scaleup_ranks
    m = allow_multiple_reduction
    if so > 1 and allow_hybrid_mode:
        up, out = (min(su, k), min(so, k)) if m else (k, k)
        return Size(
            (
                Term("receive slots of this rank", "SU*SO*T", su * so * t, d),
                Term("send slots", "T", t, d),
                Term("receive slots of channels", f"SO*(T+{channels})", so * (t + channels), d),
            ),
            (
                Term("rows from ranks of the node", "min(SU,k)*SO*T" if m else "k*SO*T",
                     up * so * t, c),
                Term("rows from nodes", "min(SO,k)*T" if m else "k*T", out * t, c),
                Term("send slots of channels",
                     f"SO*(T+{channels})" if m else f"k*SO*(T+{channels})",
                     (1 if m else k) * so * (t + channels), c),
            ),
        )  # fmt: skip
    n = so * su
    near = scaleup_is_nvlink and so == 1
    back = min(n, k) if m else k
    send = 0 if near else n * t * (1 if m else k)
    return Size(
        (
            Term("send slots", "0" if near else "T", 0 if near else t, d),
            Term("receive slots", "N*T", n * t, d),
        ),
        (
            Term("send slots", "0" if near else "N*T" if m else "N*T*k", send, c),
            Term("receive slots", "min(N,k)*T" if m else "k*T", back * t, c),
        ),
    )
