"""Scores from logits on the Ascend 950's vector cores: the sequence of ``scoring.py``."""

from types import SimpleNamespace
from typing import Any

from tilekernels.gating.scoring import EXP, FIXED, LARGEST, LEAST, LN2_HIGH, LN2_LOW, LOG2_E, ROUND
from tilekernels.gating.scoring import G as POLYNOMIAL


def scoring_macros() -> Any:
    """Macros of float32 registers: ``finite``, ``horner``, ``exp``, scores, a softmax's sum.

    Multiply-adds are ``vmadd`` and ``vaxpy``, which round once; quotients and square roots are the
    ones that TileLang rounds to nearest.
    """
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    f32, i32 = "float32", "int32"

    @T.macro
    def finite(x):
        number = S.vsel(x, S.vdup(-LARGEST, f32), S.vcmp(x, x, op="eq"))
        return S.vmins(S.vmaxs(number, -LARGEST), LARGEST)

    @T.macro
    def horner(x, coefficients):
        found = S.alloc_local((1,), f32)
        found[0] = S.vdup(coefficients[0], f32)
        for c in coefficients[1:]:
            S.vmadd(found[0], x, S.vdup(c, f32))
        return found[0]

    @T.macro
    def exp(y):
        shifted = S.alloc_local((1,), f32)
        r = S.alloc_local((1,), f32)
        shifted[0] = S.vdup(ROUND, f32)
        S.vaxpy(shifted[0], y, LOG2_E)
        n = S.vadds(shifted[0], -ROUND)
        r[0] = y
        S.vaxpy(r[0], n, -LN2_HIGH)
        S.vaxpy(r[0], n, -LN2_LOW)
        p = horner(r[0], EXP)
        power = S.vshls(T.reinterpret(shifted[0], "int32x64"), 23)
        scaled = T.reinterpret(S.vadd(T.reinterpret(p, "int32x64"), power), "float32x64")
        return S.vsel(scaled, S.vdup(0.0, f32), S.vcmps(y, LEAST, op="ge"))

    @T.macro
    def sqrtsoftplus(x):
        a = exp(S.vmuls(S.vabs(x), -0.5))
        low = S.vmul(a, horner(S.vmul(a, a), POLYNOMIAL))
        above = S.alloc_local((1,), f32)
        above[0] = S.vmaxs(x, 0.0)
        S.vmula(above[0], low, low)
        root = S.vsqrt(above[0], precision="ftz_false")
        return S.vsel(root, low, S.vcmps(x, 0.0, op="gt"))

    @T.macro
    def sigmoid(x):
        e = exp(S.vneg(S.vabs(x)))
        one = S.vdup(1.0, f32)
        top = S.vsel(one, e, S.vcmps(x, 0.0, op="gt"))
        return S.vdiv(top, S.vadd(one, e), precision="exact")

    @T.macro
    def add_parts(e, high, low):
        # An exponential as two integers of 18 bits: their sums do not depend on order.
        scaled = S.vmuls(e, FIXED)
        whole = S.vcvt(scaled, i32, round="ROUND_Z")
        rest = S.vmuls(S.vsub(scaled, S.vcvt(whole, f32)), FIXED)
        high[0] = S.vadd(high[0], whole)
        low[0] = S.vadd(low[0], S.vcvt(rest, i32))

    @T.macro
    def whole_of(high, low):
        total = S.alloc_local((1,), f32)
        total[0] = S.vmuls(S.vcvt(S.vdupv(S.vcadd(high[0])), f32), 1 / FIXED)
        S.vaxpy(total[0], S.vcvt(S.vdupv(S.vcadd(low[0])), f32), FIXED**-2)
        return total[0]

    return SimpleNamespace(
        finite=finite,
        horner=horner,
        exp=exp,
        add_parts=add_parts,
        whole_of=whole_of,
        of={"sqrtsoftplus": sqrtsoftplus, "sigmoid": sigmoid},
    )
