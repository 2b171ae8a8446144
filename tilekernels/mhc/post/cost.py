"""Cost of mHC post: streams mixed by an n x n matrix plus the layer's output times beta."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, hidden, streams, dtype="bf16", backward=False):
    """FLOPs and bytes of one site; backward reads streams, output and the gradient of both."""
    names = Cost(dict(num_tokens=num_tokens, hidden=hidden, n=streams, w=width(dtype)))
    if backward:
        return (
            names.flop("vector", "fp32", "gradients", "4*num_tokens*(n*n+n)*hidden")
            .read("streams, layer output, stream gradient", "num_tokens*(2*n+1)*hidden*w")
            .write("stream and output gradients", "num_tokens*(n+1)*hidden*w")
        )
    return (
        names.flop("vector", "fp32", "mix and add", "2*num_tokens*(n*n+n)*hidden")
        .read("streams and layer output", "num_tokens*(n+1)*hidden*w", kept=True)
        .write("streams", "num_tokens*n*hidden*w")
    )
