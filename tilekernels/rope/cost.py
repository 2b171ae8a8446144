"""Cost of a rotary embedding applied in place to the rotary part of every head."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, num_heads, rope_dim, dtype="bf16", backward=False):
    """Vector FLOPs and bytes; backward is the same rotation by the opposite angle."""
    names = dict(num_tokens=num_tokens, num_heads=num_heads, rope_dim=rope_dim, w=width(dtype))
    return (
        Cost(names)
        .flop("vector", "fp32", "rotate", "3*num_tokens*num_heads*rope_dim")
        .read("x", "num_tokens*num_heads*rope_dim*w")
        .read("cos, sin", "num_tokens*rope_dim*4")
        .write("x", "num_tokens*num_heads*rope_dim*w")
    )
