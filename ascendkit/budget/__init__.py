"""Whole-step accounting: where a training step or an inference request goes, operator by operator.

Counting is exact and needs no torch. ``python -m ascendkit.budget --help`` lists the keys.
"""
