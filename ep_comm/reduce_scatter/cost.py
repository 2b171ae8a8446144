"""Cost of a ring reduce_scatter."""

from ep_comm.ring import ring_cost


def cost(num_values, ranks, scaleup_ranks, dtype="bf16"):
    """Link and memory bytes of one rank for a full tensor of ``num_values``."""
    return ring_cost(num_values, ranks, scaleup_ranks, dtype, "(1-1/ranks)")
