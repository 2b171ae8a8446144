"""Cost of copying the embedding into the residual streams of hyper-connections."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, hidden, streams, dtype="bf16", backward=False):
    """Bytes; backward sums the streams' gradients."""
    names = Cost(dict(num_tokens=num_tokens, hidden=hidden, streams=streams, w=width(dtype)))
    if backward:
        return (
            names.flop("vector", "fp32", "sum", "num_tokens*hidden*streams")
            .read("stream gradients", "num_tokens*hidden*streams*w")
            .write("gradient", "num_tokens*hidden*w")
        )
    return names.read("x", "num_tokens*hidden*w").write("streams", "num_tokens*hidden*streams*w")
