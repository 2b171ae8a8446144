"""Tests of ascendkit.jit."""
