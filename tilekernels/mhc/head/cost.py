"""Cost of the mHC head: streams reduced to one before the final norm."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, hidden, streams, dtype="bf16", backward=False):
    """FLOPs and bytes; n mixes per token from an fp32 projection of all streams."""
    passes = 3 if backward else 1
    names = dict(num_tokens=num_tokens, hidden=hidden, n=streams, w=width(dtype), passes=passes)
    return (
        Cost(names)
        .flop("cube", "hf32", "projection to mixes", "passes*2*num_tokens*n*n*hidden")
        .flop("vector", "fp32", "weighted sum", "passes*2*num_tokens*n*hidden")
        .read("projection (fp32)", "n*n*hidden*4", state=True)
        .read("streams", "num_tokens*n*hidden*w")
        .write(
            "output" if not backward else "stream gradient",
            "num_tokens*hidden*w*(n if passes > 1 else 1)",
        )
    )
