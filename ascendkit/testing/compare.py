"""The one set of comparers. Metadata first, then NaN and infinity masks, then the measure.

A NaN equals a NaN whatever its payload: payloads depend on the instruction that made them, and no
contract here promises one. Zeros keep their sign: ``bitwise`` tells -0 from +0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendkit.errors import unknown
from ascendkit.testing.bits import (
    FINITE,
    NAN,
    as_bits,
    classes,
    is_packed,
    ordered,
    steps,
    to_double,
)
from ascendkit.testing.verdict import Verdict, merge

if TYPE_CHECKING:
    import torch

    from ascendkit.op import Contract

MEASURES = ("bitwise", "ulp", "calc_diff", "set_equal")


def compare(contract: Contract, got: Any, want: Any, name: str = "output") -> Verdict:
    """Compare results by an op's contract.

    Args:
        got: a tensor, None, a Python number, or a tuple or list of those.
        want: the same structure; tensors may live on another device.
        name: what to call the result in messages.
    """
    import torch

    if contract.compare not in MEASURES:
        raise unknown("contract.compare", contract.compare, MEASURES)
    if isinstance(want, (tuple, list)) and isinstance(got, (tuple, list)):
        if len(got) == len(want):
            pairs = enumerate(zip(got, want))
            return merge(compare(contract, g, w, f"{name}[{i}]") for i, (g, w) in pairs)
        text = f"{name}: got {len(got)} results, wanted {len(want)}"
        return Verdict(False, text, contract.compare)
    if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor):
        if contract.compare == "bitwise":
            return bitwise(got, want, name)
        if contract.compare == "set_equal":
            return set_equal(got, want, name)
        measured = ulp if contract.compare == "ulp" else close
        return measured(got, want, contract.limit, name)
    if type(got) is not type(want) or isinstance(got, torch.Tensor):
        text = f"{name}: got {type(got).__name__}, wanted {type(want).__name__}"
        return Verdict(False, text, contract.compare)
    same = bool(got == want or (got != got and want != want))
    text = "" if same else f"{name}: got {got!r}, wanted {want!r}"
    return Verdict(same, text, contract.compare, float(not same), int(not same), 1)


def bitwise(got: torch.Tensor, want: torch.Tensor, name: str = "output") -> Verdict:
    """Equal dtype, shape, strides (of dimensions longer than one) and bits."""
    early = _metadata("bitwise", got, want, name, strides=True)
    if early is not None:
        return early
    got, want = got.detach().cpu(), want.detach().cpu()
    early = _masks("bitwise", got, want, name)
    if early is not None:
        return early
    differ = (as_bits(got) != as_bits(want)) & ~_both_nan(got, want)
    return _judge("bitwise", differ, got, want, name)


def ulp(got: torch.Tensor, want: torch.Tensor, limit: float = 0.0, name: str = "output") -> Verdict:
    """Largest distance in units in the last place (integers: absolute difference) <= ``limit``."""
    early = _metadata("ulp", got, want, name, numbers=True)
    if early is not None:
        return early
    got, want = got.detach().cpu(), want.detach().cpu()
    early = _masks("ulp", got, want, name)
    if early is not None:
        return early
    a, b = ordered(got), ordered(want)
    # Keys of opposite sign can be further apart than int64 reaches; doubles cannot overflow there.
    apart = (a.double() - b.double()).abs()
    distance = apart.where((a < 0) != (b < 0), (a - b).abs().double())
    distance = distance.where(~_both_nan(got, want), 0)
    worst = float(distance.max())
    return _judge("ulp", distance > 0, got, want, name, distance, worst, limit)


def close(
    got: torch.Tensor, want: torch.Tensor, limit: float = 0.0, name: str = "output"
) -> Verdict:
    """``calc_diff(got, want) <= limit`` over the finite elements."""
    early = _metadata("calc_diff", got, want, name, numbers=True)
    if early is not None:
        return early
    got, want = got.detach().cpu(), want.detach().cpu()
    early = _masks("calc_diff", got, want, name)
    if early is not None:
        return early
    finite = (classes(got) == FINITE) & (classes(want) == FINITE)
    x, y = to_double(got).where(finite, 0), to_double(want).where(finite, 0)
    value = calc_diff(x, y)
    return _judge("calc_diff", x != y, got, want, name, (x - y).abs(), value, limit)


def set_equal(got: torch.Tensor, want: torch.Tensor, name: str = "output") -> Verdict:
    """Rows (last dimension) hold the same values equally often, in any order."""
    early = _metadata("set_equal", got, want, name)
    if early is not None:
        return early
    got, want = _sorted(got.detach().cpu()), _sorted(want.detach().cpu())
    differ = (ordered(got) != ordered(want)) & ~_both_nan(got, want)
    return _judge("set_equal", differ, got, want, f"{name}, rows sorted")


def calc_diff(x: torch.Tensor, y: torch.Tensor) -> float:
    """sum((x-y)^2) / sum(x^2+y^2) in float64; 0 where both are empty or all zero.

    About half the squared relative error while that is small. NaN where an input holds a NaN.
    """
    x, y = to_double(x.detach().cpu()), to_double(y.detach().cpu())
    scale = max((float(t.abs().max()) for t in (x, y) if t.numel()), default=0.0)
    if scale == 0.0:
        return 0.0
    # The ratio does not depend on scale, and squares of large or tiny doubles would not survive.
    x, y = x / scale, y / scale
    return float((x - y).square().sum() / (x.square() + y.square()).sum())


def _metadata(
    measure: str,
    got: torch.Tensor,
    want: torch.Tensor,
    name: str,
    numbers: bool = False,
    strides: bool = False,
) -> Verdict | None:
    """A verdict where metadata settles it, None where values have to be looked at."""
    pairs = [("dtype", got.dtype, want.dtype), ("shape", tuple(got.shape), tuple(want.shape))]
    if strides and got.shape == want.shape:
        pairs.append(("strides", steps(got), steps(want)))
    for what, g, w in pairs:
        if g != w:
            return Verdict(False, f"{name}: {what}: got {g}, wanted {w}", measure)
    if numbers and is_packed(got):
        raise TypeError(f"{name}: got {got.dtype}, wanted unpacked values for {measure}")
    return None if got.numel() else Verdict(True, measure=measure)


def _masks(measure: str, got: torch.Tensor, want: torch.Tensor, name: str) -> Verdict | None:
    """A failed verdict where NaN or infinity stands on one side only."""
    differ = classes(got) != classes(want)
    if not differ.any():
        return None
    return _judge(measure, differ, got, want, f"{name}: NaN/inf mask")


def _judge(
    measure: str,
    differ: torch.Tensor,
    got: torch.Tensor,
    want: torch.Tensor,
    name: str,
    size: torch.Tensor | None = None,
    value: float | None = None,
    limit: float = 0.0,
) -> Verdict:
    import torch

    count, total = int(differ.sum()), differ.numel()
    if value is None:
        value = float(count)
    if not count:
        return Verdict(True, "", measure, value, 0, total)
    if size is None:
        size = (to_double(got) - to_double(want)).abs().nan_to_num(nan=torch.inf)
    flat = int(size.where(differ, -1).argmax())
    at = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), differ.shape))
    g, w = (_item(t.reshape(-1)[flat]) for t in (got, want))
    # A value that is NaN must fail, so the comparison is written to be false for it.
    ok = value <= limit
    how = "" if measure in ("bitwise", "set_equal") else f", {measure} {value:.4g} > {limit:g}"
    text = f"{name}: {count} of {total} differ{how}; worst at {at}: got {g}, wanted {w}"
    return Verdict(ok, "" if ok else text, measure, value, count, total, at, g, w)


def _both_nan(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    return (classes(got) == NAN) & (classes(want) == NAN)


def _sorted(t: torch.Tensor) -> torch.Tensor:
    """Rows in ascending order, NaNs last; the dtype is kept."""
    t = t.reshape(1) if t.dim() == 0 else t.contiguous()
    keys = ordered(t).masked_fill(classes(t) == NAN, 2**62)
    return as_bits(t).gather(-1, keys.argsort(dim=-1)).view(t.dtype)


def _item(t: torch.Tensor) -> float | int | bool:
    value: float | int | bool = (as_bits(t) if is_packed(t) else t).item()
    return value
