"""reduce_fused in torch: a fused multiply-add a choice, in order."""

from __future__ import annotations

import torch

from ascendkit.exact import fma


def reference(
    x: torch.Tensor,
    x_sf: torch.Tensor | None,
    topk_weights: torch.Tensor | None,
    token_topk_to_pos: torch.Tensor,
    fp8_format: str = "",
    sf: torch.Tensor | None = None,
) -> torch.Tensor:
    """(num_tokens, hidden)."""
    total = torch.zeros(token_topk_to_pos.shape[0], x.shape[1])
    for k, places in enumerate(token_topk_to_pos.unbind(1)):
        here = ((places >= 0) & (places < x.shape[0])).nonzero()[:, 0]
        at = places[here].long()
        scale = torch.ones(len(here)) if topk_weights is None else topk_weights[here, k]
        if x_sf is not None:
            scale = scale * x_sf[at]
        total[here] = fma(x[at].float(), scale[:, None], total[here])
    if not fp8_format:
        return total.to(x.dtype)
    if sf is not None:
        total = total * sf
    return total.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
