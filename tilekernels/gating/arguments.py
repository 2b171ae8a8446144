"""What the gates demand of their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendkit import platform as platforms
from ascendkit.errors import bad_type, bad_value, unknown
from tilekernels.arguments import check_float32, check_int, check_layout, check_tensor
from tilekernels.gating import SCORING, SLOTS

if TYPE_CHECKING:
    import torch

MAX_COPIES = 32767
"""Most physical experts of a logical one: products of two such numbers fit 32 bits."""


def check_logits(op: str, logits: Any, num_topk: Any) -> None:
    """float32 (num_tokens, num_experts), contiguous, and a legal ``num_topk``."""
    import torch

    check_tensor(f"{op} logits", logits, [torch.float32], ("num_tokens", "num_routed_experts"))
    most = min(logits.shape[1], SLOTS)
    if not most:
        raise bad_value(f"{op} logits", tuple(logits.shape), "at least 1 expert")
    check_int(f"{op} num_topk", num_topk, 1, most)


def check_numbers(op: str, scale: Any, ep_rank: Any, scoring: Any) -> None:
    """The scalar arguments."""
    check_float32(f"{op} routed_scaling_factor", scale)
    check_int(f"{op} ep_rank", ep_rank, 0, 2**31 - 1)
    if not isinstance(scoring, str):
        raise bad_type(f"{op} scoring_func", scoring, "a str")
    if scoring not in SCORING:
        raise unknown(f"{op} scoring_func", scoring, SCORING)


def shared_experts(op: str, use: Any, count: Any, num_topk: int) -> int:
    """Shared experts that take part: 0, or ``count``, which is 1 or 2 then."""
    if not isinstance(use, (bool, int)):
        raise bad_type(f"{op} use_shared_as_routed", use, "a bool")
    if not use:
        if isinstance(count, bool) or not isinstance(count, int):
            raise bad_type(f"{op} num_shared_experts", count, "an int")
        return 0
    check_int(f"{op} num_shared_experts", count, 1, 2)
    if num_topk + count > SLOTS:
        raise bad_value(
            f"{op} num_topk and num_shared_experts",
            (num_topk, count),
            f"at most {SLOTS} together",
            (SLOTS - count, count),
        )
    return int(count)


def check_options(
    op: str,
    logits: torch.Tensor,
    num_topk: int,
    shared: int,
    *,
    mask: Any = None,
    bias: Any = None,
    image_bias: Any = None,
    image_token_mask: Any = None,
    fix_routing_mask: Any = None,
    to_physical_map: Any = None,
    logical_count: Any = None,
    unmapped_topk_idx: Any = None,
    force_random: Any = None,
) -> None:
    """The tensors that may be left out."""
    import torch

    tokens, experts = logits.shape
    pairs = {
        "image_bias and image_token_mask": (image_bias, image_token_mask),
        "to_physical_map and logical_count": (to_physical_map, logical_count),
    }
    for names, (one, other) in pairs.items():
        if (one is None) != (other is None):
            raise bad_value(f"{op} {names}", "one of them", "both or neither")
    if fix_routing_mask is not None and unmapped_topk_idx is None:
        raise bad_value(f"{op} unmapped_topk_idx", None, "a tensor, with fix_routing_mask")
    logical = experts + shared
    rules: dict[str, tuple[Any, torch.dtype, tuple[int | str, ...]]] = {
        "mask": (mask, torch.bool, (tokens,)),
        "image_token_mask": (image_token_mask, torch.bool, (tokens,)),
        "fix_routing_mask": (fix_routing_mask, torch.bool, (tokens,)),
        "force_random": (force_random, torch.bool, (tokens,)),
        "bias": (bias, torch.float32, (experts,)),
        "image_bias": (image_bias, torch.float32, (experts,)),
        "to_physical_map": (to_physical_map, torch.int32, (logical, "num_duplicate_experts")),
        "logical_count": (logical_count, torch.int32, (logical,)),
    }
    for name, (got, dtype, shape) in rules.items():
        if got is not None:
            check_tensor(f"{op} {name}", got, [dtype], shape, logits.device)
    if to_physical_map is not None and not 1 <= to_physical_map.shape[1] <= MAX_COPIES:
        rule = f"1 to {MAX_COPIES} columns"
        raise bad_value(f"{op} to_physical_map", tuple(to_physical_map.shape), rule)
    if unmapped_topk_idx is not None:
        what = f"{op} unmapped_topk_idx"
        check_layout(what, unmapped_topk_idx, [torch.int64], (tokens, num_topk), logits.device)
        step, unit = unmapped_topk_idx.stride()
        if (num_topk > 1 and unit != 1) or (tokens > 1 and step < num_topk):
            raise bad_value(f"{what} strides", (step, unit), "rows apart, unit stride within")


def check_values(
    op: str,
    logits: torch.Tensor,
    shared: int,
    platform: str | None,
    wanted: bool | None,
    *,
    fix_routing_mask: torch.Tensor | None = None,
    to_physical_map: torch.Tensor | None = None,
    logical_count: torch.Tensor | None = None,
    unmapped_topk_idx: torch.Tensor | None = None,
) -> None:
    """ValueError for NaN logits, fixed indices and counts out of range, where asked to look.

    By default on ``reference`` and ``emulator`` only: on a device looking costs a synchronisation.
    """
    from ascendkit import dispatch

    if logits.device.type == "meta" or dispatch.traced([logits]):
        return
    if wanted is None:
        wanted = platforms.current(logits.device.type, platform) in ("reference", "emulator")
    if not wanted:
        return
    bad = logits.isnan()
    if bad.any():
        token, expert = bad.nonzero()[0].tolist()
        raise ValueError(
            f"{op} logits: got {int(bad.sum())} NaN, the first at token {token}, expert {expert}; "
            "wanted none (check_values=False takes a NaN for -inf)"
        )
    if fix_routing_mask is not None and unmapped_topk_idx is not None:
        fixed = unmapped_topk_idx[fix_routing_mask]
        over = (fixed < -1) | (fixed >= logits.shape[1])
        if over.any():
            rule = f"-1 to {logits.shape[1] - 1} where routing is fixed"
            raise bad_value(f"{op} unmapped_topk_idx", fixed[over][0].item(), rule)
    if logical_count is not None and to_physical_map is not None:
        copies = to_physical_map.shape[1]
        over = (logical_count < 1) | (logical_count > copies)
        if over.any():
            raise bad_value(f"{op} logical_count", logical_count[over][0].item(), f"1 to {copies}")
