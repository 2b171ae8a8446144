"""Expert routing: scoring function, top-k and normalised weights."""
