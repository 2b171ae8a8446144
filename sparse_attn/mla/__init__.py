"""Dense multi-head latent attention."""
