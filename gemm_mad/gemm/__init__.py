"""Dense matrix product, one or a batch of them."""
