"""What a collective call can fail with, besides ValueError for bad arguments."""

from __future__ import annotations


class PeerTimeout(TimeoutError):
    """A peer did not arrive in time; the message names it and what it did last."""


class PeerFailed(RuntimeError):
    """A peer left the call with an exception; the message repeats it."""
