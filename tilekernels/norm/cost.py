"""Cost of RMSNorm, optionally fused with a quantising cast of its output."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, hidden, dtype="bf16", out="bf16", backward=False):
    """Vector FLOPs and bytes.

    Args:
        num_tokens, hidden: rows and columns.
        dtype: input format.
        out: output format; a quantised one includes the amax and the scales.
        backward: gradient of input and weight; reads input and output gradient, writes one.
    """
    names = Cost(dict(num_tokens=num_tokens, hidden=hidden, w=width(dtype), wo=width(out)))
    if backward:
        return (
            names.flop("vector", "fp32", "gradient", "10*num_tokens*hidden")
            .read("input and output gradient", "2*num_tokens*hidden*w")
            .write("input gradient", "num_tokens*hidden*w")
        )
    return (
        names.flop("vector", "fp32", "square, sum, scale, amax, quantise", "8*num_tokens*hidden")
        .read("input", "num_tokens*hidden*w", kept=True)
        .write("output", "num_tokens*hidden*wo")
    )
