"""Copy the embedding into the residual streams."""
