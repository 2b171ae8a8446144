"""Cost of a quantising cast with one scale per block of columns."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, hidden, dtype="bf16", out="fp8_1x128", transpose=False):
    """Vector FLOPs and bytes.

    Args:
        num_tokens, hidden: rows and columns.
        dtype, out: input and output formats.
        transpose: also writes the transposed copy with its own scales (training).
    """
    copies = 2 if transpose else 1
    names = dict(num_tokens=num_tokens, hidden=hidden, w=width(dtype), wo=width(out), copies=copies)
    return (
        Cost(names)
        .flop("vector", "fp32", "amax, scale, round", "4*copies*num_tokens*hidden")
        .read("x", "num_tokens*hidden*w")
        .write("codes and scales", "copies*num_tokens*hidden*wo")
    )
