"""Cost of a ring all_reduce."""

from ascendkit.cost import Cost
from ascendkit.formats import width
from ep_comm.ring import ring_link


def cost(num_values, ranks, scaleup_ranks, dtype="bf16"):
    """Link and memory bytes of one rank for a full tensor of ``num_values``."""
    names = dict(num_values=num_values, ranks=ranks, w=width(dtype))
    return (
        Cost(names)
        .read("tensor", "num_values*w")
        .write("tensor", "num_values*w")
        .link("ring steps", "num_values*w*2*(1-1/ranks)", link=ring_link(ranks, scaleup_ranks))
    )
