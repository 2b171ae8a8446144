"""Compressed KV: softmax-pool of a few tokens into one cache entry."""
