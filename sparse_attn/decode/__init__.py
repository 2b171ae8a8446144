"""Sparse attention, decode: few queries a sequence, gathered entries."""
