"""Expert-parallel dispatch and combine, and the collectives around them."""
