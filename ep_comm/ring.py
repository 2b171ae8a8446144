"""What ring collectives cost: the tensor through memory, a share of it over the slowest hop."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def ring_cost(num_values, ranks, scaleup_ranks, dtype, sent):
    """Link and memory bytes of one rank for a full tensor of ``num_values``.

    Args:
        ranks: size of the group; inside one domain it runs over ``scaleup``, else ``scaleout``.
        sent: share of the tensor a rank sends, a formula in ``ranks``.
    """
    link = "scaleup" if ranks <= scaleup_ranks else "scaleout"
    return (
        Cost(dict(num_values=num_values, ranks=ranks, w=width(dtype)))
        .read("tensor", "num_values*w")
        .write("tensor", "num_values*w")
        .link("ring steps", f"num_values*w*{sent}", link=link)
    )
