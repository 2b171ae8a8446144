"""EPHandle: what a dispatch leaves behind for combine and for the backward passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from ep_comm.path import Path
    from ep_comm.placement import Placement


@dataclass
class EPHandle:
    """One routing, as this rank sees it.

    Args:
        do_expand, num_experts, expert_alignment, num_max_tokens_per_rank, num_sms: of the call.
        hidden_bytes: bytes of a row without scales.
        num_recv_tokens: R; N * T without CPU sync.
        num_expanded_tokens: X; the worst case without CPU sync; 0 where rows are not expanded.
        num_recv_tokens_per_expert_list: aligned counts; empty without CPU sync.
        psum_num_recv_tokens_per_scaleup_rank: int32 [SU], inclusive; the last is R.
        psum_num_recv_tokens_per_expert: int32 [E/N]; inclusive sums of aligned counts, or, where
            rows are expanded, start + count of every expert.
        num_unaligned_recv_tokens_per_expert: int32 [E/N].
        recv_src_metadata: int32 [R, 2 + k]. Column 0: source rank * T + token. Column 1: (source
            rank, or in hybrid mode number within the scale-up peer) * k + last choice here. The
            rest: expanded row of each choice, or -1.
        dst_buffer_slot_idx: int32 [t, k], at the last choice on each rank (node, in hybrid mode):
            sender * T + slot; -1 elsewhere.
        number: of the dispatch on its buffer; equal on all ranks.
    """

    do_expand: bool
    num_experts: int
    expert_alignment: int
    num_max_tokens_per_rank: int
    num_sms: int
    number: int
    synced: bool
    num_recv_tokens: int
    num_expanded_tokens: int
    num_recv_tokens_per_expert_list: list[int]
    psum_num_recv_tokens_per_scaleup_rank: torch.Tensor
    psum_num_recv_tokens_per_expert: torch.Tensor
    num_unaligned_recv_tokens_per_expert: torch.Tensor
    recv_src_metadata: torch.Tensor
    dst_buffer_slot_idx: torch.Tensor
    buffer_id: int = field(repr=False)
    path: Path = field(repr=False)
    placement: Placement = field(repr=False)
    routing: torch.Tensor = field(repr=False)
    version: int | None = field(repr=False)

    @property
    def topk_idx(self) -> torch.Tensor:
        """The choices, by reference. ValueError where they were written after the dispatch."""
        if self.version is not None and self.routing._version != self.version:
            raise ValueError(
                f"EPHandle topk_idx: got version {self.routing._version}, wanted "
                f"{self.version}: it was written after the dispatch; dispatch again"
            )
        return self.routing

    @property
    def num_real_rows(self) -> int:
        """Rows that hold a token: of R, or of X."""
        return self.placement.num_out


def version_of(t: torch.Tensor) -> int | None:
    """The version counter; inference tensors have none."""
    return None if t.is_inference() else t._version
