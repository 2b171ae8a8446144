"""A mixture-of-experts layer that trains: gate, dispatch, experts, combine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from ep_comm.combine import combine
from ep_comm.dispatch import dispatch

if TYPE_CHECKING:
    from ep_comm.buffer import EPBuffer


class MoELayer(nn.Module):
    """Experts spread over the ranks of a buffer; every rank holds an equal share.

    The gate is replicated: average its gradients over ranks as for any data-parallel parameter.
    Experts are gated linear units, in bf16, with router weights applied to their outputs.

    Args:
        buffer: with several nodes or one; its ranks all call the layer.
        hidden, intermediate: widths of a token and inside an expert.
        num_experts, num_topk: E and k.
        expert_alignment: rows of an expert start at a multiple of it.
    """

    def __init__(
        self,
        buffer: EPBuffer,
        hidden: int,
        intermediate: int,
        num_experts: int,
        num_topk: int,
        expert_alignment: int = 1,
    ) -> None:
        super().__init__()
        self.buffer, self.num_experts, self.num_topk = buffer, num_experts, num_topk
        self.alignment = expert_alignment
        share = num_experts // buffer.size
        dtype = torch.bfloat16
        self.gate = nn.Parameter(torch.randn(num_experts, hidden) * hidden**-0.5)
        self.up = nn.Parameter(
            (torch.randn(share, hidden, 2 * intermediate) * hidden**-0.5).to(dtype)
        )
        self.down = nn.Parameter(
            (torch.randn(share, intermediate, hidden) * intermediate**-0.5).to(dtype)
        )

    def forward(self, x: torch.Tensor, shared: torch.Tensor | None = None) -> torch.Tensor:
        """bf16 [t, H] to bf16 [t, H].

        Args:
            shared: bf16 [t, H] added first, such as the output of shared experts.
        """
        scores = functional.linear(x.float(), self.gate).softmax(dim=-1)
        weights, topk_idx = scores.topk(self.num_topk, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        rows, _, row_weights, handle = dispatch(
            x, topk_idx, weights, buffer=self.buffer, num_experts=self.num_experts,
            expert_alignment=self.alignment, do_expand=True,
        )  # fmt: skip
        assert row_weights is not None
        out = self._experts(rows, handle.num_recv_tokens_per_expert_list)
        out = (out.float() * row_weights[:, None]).to(torch.bfloat16)
        return combine(out, handle, shared, buffer=self.buffer)

    def _experts(self, rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
        parts = []
        for expert, mine in enumerate(rows.split(counts)):
            gate, up = (mine @ self.up[expert]).chunk(2, dim=-1)
            parts.append((functional.silu(gate) * up) @ self.down[expert])
        return torch.cat(parts)
