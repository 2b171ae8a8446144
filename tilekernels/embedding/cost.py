"""Cost of a token embedding look-up."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_tokens, hidden, dtype="bf16", backward=False):
    """Bytes of ``num_tokens`` row gathers (backward: fp32 read-add-write of the touched rows)."""
    names = Cost(dict(num_tokens=num_tokens, hidden=hidden, w=width(dtype)))
    if backward:
        return (
            names.read("output gradient", "num_tokens*hidden*w")
            .read("row gradients", "num_tokens*hidden*4")
            .write("row gradients", "num_tokens*hidden*4")
        )
    return (
        names.read("rows", "num_tokens*hidden*w", state=True)
        .read("token ids", "num_tokens*8")
        .write("output", "num_tokens*hidden*w")
    )
