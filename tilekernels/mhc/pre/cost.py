"""Cost of mHC pre: RMS, projection to the mixes, Sinkhorn, and the weighted sum of the streams."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(
    num_tokens, hidden, streams, sinkhorn_iters=20, fused_post=False, dtype="bf16", backward=False
):
    """FLOPs and bytes of one site (attention or FFN).

    Args:
        num_tokens, hidden, streams: T, H and the multiplicity n (4); mixes are n*n + 2n values.
        fused_post: the previous site's post runs in the same pass (single-pass mHC).
        backward: gradients of mixes, projection and streams; the forward is recomputed.
    """
    passes = 3 if backward else 1
    names = dict(num_tokens=num_tokens, hidden=hidden, n=streams, w=width(dtype), passes=passes)
    names |= dict(mixes=streams * streams + 2 * streams, iters=sinkhorn_iters)
    counted = (
        Cost(names)
        .flop("cube", "hf32", "projection to mixes", "passes*2*num_tokens*mixes*n*hidden")
        .flop("vector", "fp32", "RMS and weighted sum", "passes*4*num_tokens*n*hidden")
        .flop("vector", "fp32", "Sinkhorn", "passes*4*num_tokens*iters*n*n")
        .read("projection (fp32)", "mixes*n*hidden*4", state=True)
    )
    if backward:
        return (
            counted.read("streams, their gradient, output gradient", "num_tokens*(2*n+1)*hidden*w")
            .write("stream gradient", "num_tokens*n*hidden*w")
            .write("projection gradient (fp32)", "mixes*n*hidden*4")
        )
    if fused_post:
        return (
            counted.flop("vector", "fp32", "previous post", "2*num_tokens*(n*n+n)*hidden")
            .read("streams and previous layer output", "num_tokens*(n+1)*hidden*w", kept=True)
            .write("streams and layer input", "num_tokens*(n+1)*hidden*w")
        )
    return counted.read("streams", "num_tokens*n*hidden*w", kept=True).write(
        "layer input", "num_tokens*hidden*w"
    )
