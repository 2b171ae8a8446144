"""dispatch of all ranks, in torch: the strict-order reference, as the registry calls it."""

from __future__ import annotations

from typing import Any

import torch

from ep_comm import reference as strict


def setting(options: dict[str, Any]) -> strict.Setting:
    """The setting of a case's options."""
    return strict.Setting(
        options["num_experts"], options["num_max_tokens_per_rank"],
        options.get("expert_alignment", 1), options.get("do_expand", False),
        options.get("do_expand", False), options.get("multiple_reduction", True),
        options.get("scaleup_ranks", 0),
    )  # fmt: skip


def reference(per_rank: list[tuple[Any, ...]]) -> list[tuple[torch.Tensor, ...]]:
    """Outputs of every rank from ``(x, topk_idx, topk_weights, options)`` of every rank.

    Returns:
        (recv_x, recv_topk_weights, src_token_global_idx, expanded rows [R, k], prefix sum per
        scale-up rank, prefix sum per expert), and recv_topk_idx last where rows are not expanded.
    """
    sent = [strict.Sent(x, idx, None, w) for x, idx, w, _ in per_rank]
    s = setting(per_rank[0][3])
    found = []
    for got in strict.dispatch(sent, s):
        assert got.topk_weights is not None
        parts = (
            got.x, got.topk_weights, got.src_token_global_idx, got.expanded_row,
            got.psum_per_scaleup_rank, got.psum_per_expert,
        )  # fmt: skip
        found.append(parts if s.do_expand else (*parts, got.topk_idx))
    return found
