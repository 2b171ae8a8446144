"""Expert-parallel combine: expert outputs back to their tokens."""
