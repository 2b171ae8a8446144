"""Sum of a tensor over ranks, every rank gets it."""
