"""FP8 rows of low-latency calls: codes, a scale per 128 values, and scales as packed exponents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

BLOCK, MOST, LEAST_AMAX = 128, 448.0, 1e-4
PACK = 4
"""Exponents of one int32."""


def cast_to_fp8(x: torch.Tensor, round_scale: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """bf16 [t, H] as float8_e4m3fn and float32 scales [t, H/128]; a value is code * scale.

    Args:
        round_scale: scales are rounded up to powers of two.
    """
    import torch

    blocks = x.float().view(x.shape[0], -1, BLOCK)
    scale = blocks.abs().amax(-1).clamp(min=LEAST_AMAX) / MOST
    if round_scale:
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    codes = (blocks / scale[..., None]).to(torch.float8_e4m3fn)
    return codes.view(x.shape), scale


def pack_ue8m0(scale: torch.Tensor) -> torch.Tensor:
    """float32 powers of two [t, S] as int32 [t, S/4]: exponents, the first in the lowest byte."""
    import torch

    exponents = scale.contiguous().view(torch.int32) >> 23 & 0xFF
    return exponents.to(torch.uint8).view(torch.int32)
