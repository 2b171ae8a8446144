"""Cost of handing activations to the next pipeline stage."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_values, link="scaleout", dtype="bf16"):
    """Link and memory bytes of one rank for a tensor of ``num_values``."""
    return (
        Cost(dict(num_values=num_values, w=width(dtype)))
        .read("tensor", "num_values*w")
        .write("tensor", "num_values*w")
        .link("tensor", "num_values*w", link=link)
    )
