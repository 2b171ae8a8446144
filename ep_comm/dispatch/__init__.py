"""Expert-parallel dispatch: tokens to the ranks that hold their experts."""
