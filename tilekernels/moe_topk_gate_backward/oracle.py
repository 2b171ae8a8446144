"""moe_topk_gate_backward judged by its formula in float64, errors against the terms' sizes."""

import numpy as np

NEAR = 3e-6
"""Relative to the sum of magnitudes of what is added."""


def invariants(result, *args):
    """A sentence for every token whose gradient is off."""
    scores, idx, weights, grad, scale, scoring, mask, h = args
    experts, topk = scores.shape[1], idx.shape[1]
    per = len(scores) // len(h) if h is not None else 0
    for t, u in enumerate(scores.astype(np.float64)):
        ok = (idx[t] >= 0) & (idx[t] < experts)
        at = idx[t][ok]
        g, w = (x[t, :topk][ok].astype(np.float64) for x in (grad, weights))
        below = u[at].sum() + 1e-20
        du, size = np.zeros(experts), np.zeros(experts)
        np.add.at(du, at, (scale * g - (g * w).sum()) / below)
        np.add.at(size, at, (abs(scale * g) + abs(g * w).sum()) / below)
        if h is not None and mask[t] and u.any():
            mine, total = h[t // per].astype(np.float64), u.sum()
            du += (mine - (mine * u).sum() / total) / total
            size += (abs(mine) + abs(mine * u).sum() / total) / total
        if scoring == "softmax":
            want, room = u * (du - (du * u).sum()), u * (size + (size * u).sum())
        elif scoring == "sigmoid":
            # The derivative from the score as it is: near 1 most of its bits are gone already.
            want, room = du * u * (1 - u), size * u * (1 - u)
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                steep = np.where(u > 0, -np.expm1(-u * u) / (2 * u), 0.0)
            want, room = du * steep, size * steep
        off = abs(result[t] - want) > NEAR * room + 1e-37
        if off.any() or not np.isfinite(result[t]).all():
            e = int(off.argmax())
            yield f"token {t}, expert {e}: got {result[t, e]}, wanted {want[e]}"
