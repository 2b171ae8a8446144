"""Scores from logits on NVIDIA GPUs: the sequence of ``scoring.py``, operation by operation."""

from types import SimpleNamespace
from typing import Any

from tilekernels.gating.scoring import EXP, FIXED, LARGEST, LEAST, LN2_HIGH, LN2_LOW, LOG2_E, ROUND
from tilekernels.gating.scoring import G as POLYNOMIAL


def scoring_macros() -> Any:
    """Macros of float32 values: ``finite``, ``exp``, the scores, and the parts of a softmax's sum.

    Multiplications and additions are spelled as intrinsics that the device compiler must not fuse.
    """
    from tilelang import language as T

    f = T.float32

    # Variables rather than names: a name used twice is an expression computed twice.
    @T.macro
    def horner(x, coefficients):
        found = T.alloc_var("float32", init=f(coefficients[0]))
        for c in coefficients[1:]:
            found = T.ieee_fmaf(found, x, f(c))
        return found

    @T.macro
    def finite(x):
        # The maximum with a number makes a NaN the number.
        return T.alloc_var("float32", init=T.min(T.max(x, f(-LARGEST)), f(LARGEST)))

    @T.macro
    def exp(argument):
        y = T.alloc_var("float32", init=argument)
        shifted = T.alloc_var("float32", init=T.ieee_fmaf(y, f(LOG2_E), f(ROUND)))
        n = T.alloc_var("float32", init=T.ieee_sub(shifted, f(ROUND)))
        r = T.alloc_var("float32", init=T.ieee_fmaf(n, f(-LN2_HIGH), y))
        r = T.ieee_fmaf(n, f(-LN2_LOW), r)
        p = horner(r, EXP)
        power = T.reinterpret(shifted, "uint32") << T.uint32(23)
        scaled = T.reinterpret(T.reinterpret(p, "uint32") + power, "float32")
        return T.alloc_var("float32", init=T.if_then_else(y >= f(LEAST), scaled, f(0)))

    @T.macro
    def sqrtsoftplus(argument):
        x = T.alloc_var("float32", init=argument)
        a = exp(T.ieee_mul(T.abs(x), f(-0.5)))
        q = T.alloc_var("float32", init=T.ieee_mul(a, a))
        low = T.alloc_var("float32", init=T.ieee_mul(a, horner(q, POLYNOMIAL)))
        root = T.ieee_fsqrt(T.ieee_fmaf(low, low, T.max(x, f(0))))
        return T.alloc_var("float32", init=T.if_then_else(x > f(0), root, low))

    @T.macro
    def sigmoid(argument):
        x = T.alloc_var("float32", init=argument)
        e = exp(-T.abs(x))
        top = T.if_then_else(x > f(0), f(1), e)
        return T.alloc_var("float32", init=T.ieee_fdiv(top, T.ieee_add(f(1), e)))

    @T.macro
    def add_parts(e, sums):
        # An exponential as two integers of 18 bits: their sums do not depend on order.
        scaled = T.alloc_var("float32", init=T.ieee_mul(e, f(FIXED)))
        whole = T.alloc_var("int32", init=T.cast(scaled, "int32"))
        rest = T.ieee_mul(T.ieee_sub(scaled, T.cast(whole, "float32")), f(FIXED))
        sums[0] = sums[0] + whole
        # Adding and taking away rounds to the nearest integer, ties to even.
        nearest = T.ieee_sub(T.ieee_add(rest, f(ROUND)), f(ROUND))
        sums[1] = sums[1] + T.cast(nearest, "int32")

    @T.macro
    def whole_of(sums):
        high = T.ieee_mul(T.cast(sums[0], "float32"), f(1 / FIXED))
        return T.ieee_fmaf(T.cast(sums[1], "float32"), f(FIXED**-2), high)

    return SimpleNamespace(
        finite=finite,
        exp=exp,
        add_parts=add_parts,
        whole_of=whole_of,
        of={"sqrtsoftplus": sqrtsoftplus, "sigmoid": sigmoid},
    )
