"""Sparse attention: prefill and decode, the compressed KV cache, and the lightning indexer."""
