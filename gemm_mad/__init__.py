"""Dense and grouped matrix products (MAD units, tensor cores), their selectors, and MegaMoE."""
