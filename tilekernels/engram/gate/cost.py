"""Cost of the Engram gate: gate by similarity, short convolution, add into the streams."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, hidden, streams, dtype="bf16", backward=False):
    """FLOPs and bytes; the fused key/value projection gives n+1 vectors of ``hidden`` a token."""
    passes = 2 if backward else 1
    names = dict(num_tokens=num_tokens, hidden=hidden, n=streams, w=width(dtype), passes=passes)
    return (
        Cost(names)
        .flop("vector", "fp32", "norms, dot, gate, convolution", "passes*12*num_tokens*n*hidden")
        .read("streams", "passes*num_tokens*n*hidden*w")
        .read("keys and value", "num_tokens*(n+1)*hidden*w", kept=True)
        .write("streams", "num_tokens*(n+1 if passes == 1 else 2*n+1)*hidden*w")
    )
