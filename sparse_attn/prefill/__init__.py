"""Sparse attention, prefill and training: many queries share the entries."""
