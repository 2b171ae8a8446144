"""dispatch on the ranks of a backend, for the checking loop: one call for all ranks."""

from __future__ import annotations

from typing import Any

from ep_comm.collective import launchers

__all__ = ["launchers"]


def on_rank(group: Any, x: Any, topk_idx: Any, topk_weights: Any, options: Any) -> tuple[Any, ...]:
    """This rank's outputs, as the reference gives them."""
    from ep_comm.collective import small

    buffer = small(group, x.shape[1], topk_idx.shape[1], options)
    recv_x, recv_idx, recv_weights, h, _ = buffer.dispatch(
        x, topk_idx, topk_weights, num_experts=options["num_experts"],
        expert_alignment=options.get("expert_alignment", 1),
        do_expand=options.get("do_expand", False), do_zero_padding=options.get("do_expand", False),
    )  # fmt: skip
    buffer.destroy()
    meta = h.recv_src_metadata
    parts = (
        recv_x, recv_weights, meta[:, 0].contiguous(), meta[:, 2:].contiguous(),
        h.psum_num_recv_tokens_per_scaleup_rank, h.psum_num_recv_tokens_per_expert,
    )  # fmt: skip
    return parts if recv_idx is None else (*parts, recv_idx)
