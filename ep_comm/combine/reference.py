"""combine of all ranks, in torch: the strict-order reference, as the registry calls it."""

from __future__ import annotations

from typing import Any

import torch

from ep_comm import reference as strict
from ep_comm.dispatch.reference import setting


def reference(per_rank: list[tuple[Any, ...]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(combined_x, combined_topk_weights) of every rank.

    Arguments of a rank: y, a row for every row its dispatch gives; topk_idx; topk_weights; biases,
    a tuple; options. Weights travel as dispatch delivers them.
    """
    s = setting(per_rank[0][4])
    # Dispatch moves the weights; its tokens have no bearing on combine.
    sent = [
        strict.Sent(y.new_zeros((len(idx), y.shape[1])), idx, None, w)
        for y, idx, w, _, _ in per_rank
    ]
    received = strict.dispatch(sent, s)
    weights = [r.topk_weights for r in received if r.topk_weights is not None]
    got = strict.combine(
        [a[0] for a in per_rank], received, sent, s, bias=[a[3] for a in per_rank],
        weights=weights,
    )  # fmt: skip
    return [(x, w) for x, w in got if w is not None]
