"""Time of a call from measured kernels: rows, monotone interpolation, transfer, and floors."""

from ascendkit.budget.curves.lookup import Timing, timing

__all__ = ["Timing", "timing"]
