"""KV cache: one token's latent normalised, rotated, quantised and stored."""
