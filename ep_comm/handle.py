"""EPHandle: what a dispatch leaves behind for combine and for the backward passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
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

    @cached_property
    def recv_src_metadata(self) -> torch.Tensor:
        """int32 [R, 2 + k], made when first read.

        Column 0: source rank * T + token. Column 1: (source rank, or in hybrid mode number within
        the scale-up peer) * k + last choice here. The rest: expanded row of each choice, or -1.
        """
        import torch

        done, k = self.placement, self.routing.shape[1]
        source = done.src.long() // self.num_max_tokens_per_rank
        columns = torch.arange(k, device=done.local.device)
        last = torch.where(done.local >= 0, columns, -1).amax(dim=1)
        expanded = torch.full_like(done.local, -1) if done.expanded is None else done.expanded
        number = self.path.numbered(source)
        columns_ = [done.src.long()[:, None], (number * k + last)[:, None], expanded]
        return torch.cat(columns_, dim=1).to(torch.int32)

    @cached_property
    def dst_buffer_slot_idx(self) -> torch.Tensor:
        """int32 [t, k], made when first read: sender * T + slot at the last choice on each rank
        (node, in hybrid mode), -1 elsewhere."""
        import torch

        hop = self.path.hops[0]
        first = hop.transport.rank * self.num_max_tokens_per_rank
        return torch.where(hop.slot >= 0, first + hop.slot, -1).to(torch.int32)

    @property
    def num_real_rows(self) -> int:
        """Rows that hold a token, of R or of X; waits for the device where it alone knows."""
        return self.placement.num_real


def version_of(t: torch.Tensor) -> int | None:
    """The version counter; inference tensors have none."""
    return None if t.is_inference() else t._version
