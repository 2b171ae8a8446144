"""How the reference itself is judged: by the op's ``oracle.py``, which shares no code with it.

``oracle(*args)`` takes the arguments of the op with every tensor as a NumPy array and returns
arrays. float16, float32, float64 and integers arrive as they are; narrower floats as float32, which
holds them exactly; packed fp4 as bytes. Returned floats are rounded once to the output's dtype; an
oracle that answers for the bits of a narrow float returns unsigned integers of its width (or an
ml_dtypes array).

An op that writes arguments (``!`` in its ``SCHEMA``) leaves them in the arrays it was given; a
result is then the tuple of what it returns, followed by those.

``invariants(result, *args)`` may stand beside or instead of it, where no single answer is right
(random numbers, sets): it yields a sentence for every rule the result breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ascendkit.errors import bad_type, bad_value
from ascendkit.op import Op
from ascendkit.schema import parse
from ascendkit.testing.bits import is_packed
from ascendkit.testing.compare import compare
from ascendkit.testing.verdict import Verdict

NATIVE = frozenset(
    f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)
) - {"float8"} | {"bool"}
"""dtypes that torch and NumPy share under one name."""


def name_of(op: Op) -> str:
    """What judges the reference of ``op``, for its record; empty where nothing does."""
    if not op.has("oracle"):
        return ""
    return op.contract.oracle or f"{op.name}.oracle"


def judge(op: Op, args: tuple[Any, ...], got: Any) -> Verdict:
    """Hold a result of the reference against the op's oracle and invariants."""
    module = op.load("oracle")
    oracle: Callable[..., Any] | None = getattr(module, "oracle", None)
    invariants: Callable[..., Any] | None = getattr(module, "invariants", None)
    if oracle is None and invariants is None:
        raise bad_value(f"{op.name}.oracle", "neither", "a function oracle(...) or invariants(...)")
    verdict = Verdict(True, measure="invariants")
    if invariants is not None:
        broken = list(invariants(to_numpy(got), *to_numpy(args)))
        if broken:
            return Verdict(False, "; ".join(map(str, broken)), "invariants", len(broken))
    if oracle is not None:
        arrays = to_numpy(args)
        answer = parse(getattr(op.load(), "SCHEMA", "")).results(oracle(*arrays), arrays)
        want = to_torch(answer, got)
        verdict = compare(op.contract, got, want)
    return verdict


def to_numpy(args: Any) -> Any:
    """Tensors (in tuples and lists too) as arrays the oracle may keep; the rest as it is."""
    import torch

    if isinstance(args, (tuple, list)):
        return type(args)(to_numpy(a) for a in args)
    if not isinstance(args, torch.Tensor):
        return args
    t = args.detach().cpu()
    if is_packed(t):
        t = t.view(torch.uint8)
    elif str(t.dtype).removeprefix("torch.") not in NATIVE:
        t = t.float()
    return t.numpy().copy()


def to_torch(answer: Any, like: Any) -> Any:
    """An oracle's arrays as tensors with the dtypes and strides of ``like``."""
    import numpy as np
    import torch

    if isinstance(like, (tuple, list)) and isinstance(answer, (tuple, list)):
        # Lengths that differ are for the comparison to report.
        rest = answer[len(like) :]
        return (*(to_torch(a, x) for a, x in zip(answer, like)), *rest)
    if not isinstance(like, torch.Tensor) or not isinstance(answer, (np.ndarray, np.generic)):
        return answer
    array = np.array(answer)
    narrow = like.dtype.is_floating_point and str(like.dtype).removeprefix("torch.") not in NATIVE
    if array.dtype.name not in NATIVE or (narrow and array.dtype.kind == "u"):
        bits = array.view(f"u{array.dtype.itemsize}")
        wanted = like.element_size()
        if bits.dtype.itemsize != wanted:
            raise bad_type("oracle's bits", bits, f"{8 * wanted}-bit values for {like.dtype}")
        flat = torch.from_numpy(bits.view(f"i{wanted}").reshape(-1))
        values = flat.view(like.dtype).reshape(array.shape)
    else:
        if array.dtype.kind == "f" and not like.dtype.is_floating_point:
            raise ValueError(f"oracle: got {array.dtype}, wanted integers for {like.dtype}")
        wide = torch.from_numpy(array)
        values = wide.to(like.dtype)
        if not like.dtype.is_floating_point and not torch.equal(values.to(wide.dtype), wide):
            raise ValueError(f"oracle: got {array.dtype} values that {like.dtype} cannot hold")
    if values.shape != like.shape:
        return values
    return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype).copy_(values)
