"""Engram: n-gram memory rows added to the residual streams."""
