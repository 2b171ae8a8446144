"""Cost of SwiGLU with optional clamp, fused with a quantising cast of its output."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, hidden, dtype="bf16", out="bf16", backward=False):
    """Vector FLOPs and bytes; ``hidden`` is the width of one half of the input.

    Backward recomputes the activation, reads the output gradient and writes both halves' gradients.
    """
    names = Cost(dict(num_tokens=num_tokens, hidden=hidden, w=width(dtype), wo=width(out)))
    if backward:
        return (
            names.flop("vector", "fp32", "gradient", "16*num_tokens*hidden")
            .read("gate, up and output gradient", "3*num_tokens*hidden*w")
            .write("gate and up gradients", "2*num_tokens*hidden*w")
        )
    return (
        names.flop("vector", "fp32", "silu, multiply, amax, quantise", "10*num_tokens*hidden")
        .read("gate and up", "2*num_tokens*hidden*w", kept=True)
        .write("output", "num_tokens*hidden*wo")
    )
