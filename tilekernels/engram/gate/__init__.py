"""Engram gate: similarity gate, short convolution, add into the streams."""
