"""Index lists with invalid entries where code forgets to look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit.errors import bad_value
from ascendkit.testing.draw import generator, place

if TYPE_CHECKING:
    import torch

INVALID = -1


def indices(
    rows: int,
    width: int,
    limit: int,
    seed: int,
    *,
    invalid: str | None = None,
    share: float = 0.1,
    distinct: bool = True,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``[rows, width]`` indices below ``limit``, int32 unless ``dtype`` says otherwise.

    Args:
        invalid: a place of ``draw.PLACES`` whose entries become -1, or None.
        share: share of a row that becomes invalid.
        distinct: no index twice in a row.
    """
    import torch

    if distinct and width > limit:
        raise bad_value("width of distinct indices", width, f"at most limit {limit}", limit)
    g = generator(seed)
    if distinct:
        out = torch.rand(rows, limit, generator=g).argsort(dim=-1)[:, :width]
    elif limit:
        out = torch.randint(0, limit, (rows, width), generator=g)
    else:
        out = torch.full((rows, width), INVALID)
    if invalid is not None and width:
        out = out.masked_fill(place((rows, width), invalid, g, share), INVALID)
    return out.to(dtype or torch.int32)
