"""Softmax cross-entropy over the vocabulary."""
