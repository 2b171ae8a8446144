"""reduce_fused in exact fractions, rounded after every step, in NumPy."""

from fractions import Fraction

import numpy as np


def oracle(x, x_sf, topk_weights, token_topk_to_pos, fp8_format="", sf=None):
    """One multiply-add at a time."""
    one = np.float32
    tokens, topk = token_topk_to_pos.shape
    out = np.zeros((tokens, x.shape[1]), one)
    with np.errstate(all="ignore"):
        for t in range(tokens):
            for k in range(topk):
                place = token_topk_to_pos[t, k]
                if not 0 <= place < len(x):
                    continue
                scale = one(1) if topk_weights is None else topk_weights[t, k]
                if x_sf is not None:
                    scale = one(scale * x_sf[place])
                for h in range(x.shape[1]):
                    out[t, h] = _fma(one(x[place, h]), scale, out[t, h])
        if fp8_format:
            out = np.clip(out * (one(1) if sf is None else sf[0]), -448, 448)
    return out


def _fma(a, b, c):
    """a * b + c with one rounding."""
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    return _nearest(exact)


def _nearest(exact):
    """The float32 nearest to a fraction, ties to even."""
    size, power = abs(exact), 0
    power = size.numerator.bit_length() - size.denominator.bit_length() - 24
    while size / Fraction(2) ** power >= 1 << 24:
        power += 1
    while power > -149 and size / Fraction(2) ** power < 1 << 23:
        power -= 1
    power = max(power, -149)
    units = round(size / Fraction(2) ** power)
    sign = -1.0 if exact < 0 else 1.0
    return np.float32(sign * float(units) * 2.0**power)
