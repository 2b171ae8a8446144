"""expand_to_fused: every token's row at each of its places in the expert-major layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit import platform as platforms
from ascendkit.errors import bad_value
from tilekernels.arguments import check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor x, Tensor token_topk_to_pos, Tensor pos_to_expert) -> Tensor"
MAX_TOPK = 32

_name = "tilekernels.expand_to_fused"


def expand_to_fused(
    x: torch.Tensor,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
    check_values: bool | None = None,
) -> torch.Tensor:
    """Copy x[n] to row token_topk_to_pos[n, k] of the result; zeros where no expert has the row.

    The maps fit each other, as those of ``get_fused_mapping`` do: no position is named twice, none
    that has no expert is named at all. Places of -1 (or beyond the result) are left out. Rows are
    zero where ``pos_to_expert`` is negative, also without tokens. Bytes move unchanged, NaN
    payloads included. Differentiable in ``x`` for float32, bfloat16 and float16: the adjoint is
    ``reduce_fused`` without weights.

    Args:
        x: (num_tokens, hidden) of any dtype, contiguous.
        token_topk_to_pos: int32 (num_tokens, num_topk), contiguous; num_topk from 1 to 32.
        pos_to_expert: int32 (num_expanded_tokens,), contiguous.
        out: (num_expanded_tokens, hidden) of the same dtype, contiguous; written and returned.
        platform: a platform to force; by default the device of ``x`` decides.
        check_values: raise where the maps do not fit each other. By default on ``reference`` and
            ``emulator`` only; not looked at while a graph is traced. Unchecked, such positions hold
            anything, and so does the gradient of tokens that name them.

    Returns:
        (num_expanded_tokens, hidden), dtype of ``x``. A position that has an expert and is named by
        no token is not written.

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or map that is not legal.

    Source: expand_to_fused of TileKernels before 2.1.0, where 0 tokens leave the result unwritten.
    """
    check_maps("expand_to_fused", x, token_topk_to_pos, pos_to_expert)
    if out is not None:
        wanted = (pos_to_expert.shape[0], x.shape[1])
        check_tensor("expand_to_fused out", out, [x.dtype], wanted, x.device)
    check_places("expand_to_fused", token_topk_to_pos, pos_to_expert, platform, check_values)
    params = {
        "num_tokens": x.shape[0],
        "num_topk": token_topk_to_pos.shape[1],
        "num_expanded_tokens": pos_to_expert.shape[0],
        "row_bytes": x.shape[1] * x.element_size(),
    }
    args = (x, token_topk_to_pos, pos_to_expert)
    found: torch.Tensor = dispatch.call(_name, args, params, out=out, platform=platform)
    return found


def allocate(
    x: torch.Tensor, token_topk_to_pos: torch.Tensor, pos_to_expert: torch.Tensor
) -> torch.Tensor:
    """The output of a call, not filled."""
    return x.new_empty((pos_to_expert.shape[0], x.shape[1]))


def check_maps(
    op: str, x: torch.Tensor, token_topk_to_pos: torch.Tensor, pos_to_expert: torch.Tensor
) -> None:
    """Raise unless a row a token, its places and the experts of all places fit together."""
    import torch

    check_tensor(f"{op} x", x, [], ("num_tokens", "hidden"))
    what = f"{op} token_topk_to_pos"
    check_tensor(what, token_topk_to_pos, [torch.int32], (x.shape[0], "num_topk"), x.device)
    if not 1 <= token_topk_to_pos.shape[1] <= MAX_TOPK:
        raise bad_value(what, tuple(token_topk_to_pos.shape), f"1 to {MAX_TOPK} columns")
    what = f"{op} pos_to_expert"
    check_tensor(what, pos_to_expert, [torch.int32], ("num_expanded_tokens",), x.device)
    if not x.shape[1]:
        raise bad_value(f"{op} x", tuple(x.shape), "at least 1 column")


def check_places(
    op: str,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    platform: str | None,
    wanted: bool | None,
) -> None:
    """ValueError for a place without an expert or named before, where asked to look.

    By default on ``reference`` and ``emulator`` only: on a device looking costs a synchronisation.
    """
    import torch

    device = pos_to_expert.device.type
    if device == "meta" or dispatch.traced([token_topk_to_pos, pos_to_expert]):
        return
    if wanted is None:
        wanted = platforms.current(device, platform) in ("reference", "emulator")
    size, topk = pos_to_expert.shape[0], token_topk_to_pos.shape[1]
    if not wanted or not size:
        return
    places = token_topk_to_pos.flatten()
    entry = ((places >= 0) & (places < size)).nonzero().flatten()
    named = places[entry].long()
    # The first entry that names each position: equal values keep their order.
    order = named.argsort(stable=True)
    again = named.new_zeros(len(named), dtype=torch.bool)
    again[order[1:]] = named[order[1:]] == named[order[:-1]]
    rules = {
        "a position that has an expert": pos_to_expert[named] < 0,
        "a position that no place before it names": again,
    }
    for rule, bad in rules.items():
        if bad.any():
            at = int(bad.nonzero()[0])
            token, k = divmod(int(entry[at]), topk)
            what = f"{op} token_topk_to_pos[{token}, {k}]"
            raise bad_value(what, int(named[at]), f"{rule} (check_values)", -1)
