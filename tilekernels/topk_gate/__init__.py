"""topk_gate: the k experts with the highest scores, for every token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit import platform as platforms
from ascendkit.errors import bad_type, bad_value

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor scores, int num_topk) -> Tensor"
MAX_TOPK = 32

_name = "tilekernels.topk_gate"


def topk_gate(
    scores: torch.Tensor,
    num_topk: int,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
    check_values: bool | None = None,
) -> torch.Tensor:
    """Indices of the ``num_topk`` largest scores of every token, in descending order of score.

    Equal scores are ordered by index, the smaller first; -0.0 equals 0.0. Infinities are ordinary
    scores. A NaN counts as -inf: it comes last, and no platform traps on it.

    Args:
        scores: float32 (num_tokens, num_experts), contiguous.
        num_topk: 1 to min(num_experts, 32).
        out: int64 (num_tokens, num_topk), contiguous, on the same device; written and returned.
        platform: a platform to force; by default the device of ``scores`` decides.
        check_values: raise where a score is NaN. By default on ``reference`` and ``emulator`` only:
            on a device it costs a synchronisation. Not looked at while a graph is traced.

    Returns:
        int64 (num_tokens, num_topk).

    Raises:
        TypeError: an argument of the wrong type or dtype.
        ValueError: a shape, stride, device or limit that is not legal, or a NaN.

    Source: the definition of tile-kernels 2.1.0, extended to non-finite scores.
    """
    _check(scores, num_topk, out)
    _check_values(scores, platform, check_values)
    tokens, experts = scores.shape
    params = {"num_tokens": tokens, "num_experts": experts, "num_topk": num_topk}
    return dispatch.call(_name, (scores, num_topk), params, out=out, platform=platform)


def allocate(scores: torch.Tensor, num_topk: int) -> torch.Tensor:
    """The output of a call, not filled."""
    import torch

    return scores.new_empty((scores.shape[0], num_topk), dtype=torch.int64)


def _check(scores: torch.Tensor, num_topk: int, out: torch.Tensor | None) -> None:
    import torch

    if not isinstance(scores, torch.Tensor):
        raise bad_type("topk_gate scores", scores, "a torch.Tensor")
    if scores.dtype != torch.float32:
        raise TypeError(f"topk_gate scores: got {scores.dtype}, wanted torch.float32")
    if scores.dim() != 2:
        raise bad_value(
            "topk_gate scores", tuple(scores.shape), "2 dimensions (num_tokens, num_experts)"
        )
    if not scores.is_contiguous():
        raise bad_value(
            "topk_gate scores strides", scores.stride(), "contiguous", (scores.shape[1], 1)
        )
    if not isinstance(num_topk, (int, torch.SymInt)) or isinstance(num_topk, bool):
        raise bad_type("topk_gate num_topk", num_topk, "an int")
    most = min(scores.shape[1], MAX_TOPK)
    if not most:
        raise bad_value("topk_gate scores", tuple(scores.shape), "at least 1 expert")
    if not 1 <= num_topk <= most:
        nearest = min(max(num_topk, 1), most)
        raise bad_value(
            "topk_gate num_topk", num_topk, f"1 to min(num_experts, {MAX_TOPK}) = {most}", nearest
        )
    if out is not None:
        _check_out(scores, num_topk, out)


def _check_out(scores: torch.Tensor, num_topk: int, out: torch.Tensor) -> None:
    import torch

    wanted = (scores.shape[0], num_topk)
    if not isinstance(out, torch.Tensor):
        raise bad_type("topk_gate out", out, "a torch.Tensor")
    if out.dtype != torch.int64:
        raise TypeError(f"topk_gate out: got {out.dtype}, wanted torch.int64")
    if out.shape != wanted:
        raise bad_value("topk_gate out", tuple(out.shape), "(num_tokens, num_topk)", wanted)
    if not out.is_contiguous():
        raise bad_value("topk_gate out strides", out.stride(), "contiguous", (num_topk, 1))
    if out.device != scores.device:
        raise bad_value("topk_gate out device", str(out.device), "that of scores", scores.device)


def _check_values(scores: torch.Tensor, platform: str | None, wanted: bool | None) -> None:
    import torch

    seen = type(scores) in (torch.Tensor, torch.nn.Parameter) and scores.device.type != "meta"
    if torch.compiler.is_compiling() or not seen:
        return
    if wanted is None:
        wanted = platforms.current(scores.device.type, platform) in ("reference", "emulator")
    if not wanted:
        return
    bad = scores.isnan()
    count = int(bad.sum())
    if count:
        token, expert = bad.nonzero()[0].tolist()
        raise ValueError(
            f"topk_gate scores: got {count} NaN, the first at token {token}, expert {expert}; "
            "wanted none (check_values=False takes a NaN for -inf)"
        )
