"""Manifold-constrained hyper-connections (mHC): several residual streams, mixed per layer."""
