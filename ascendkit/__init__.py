"""ascendkit: kernels of DeepSeek's Ascend release and their NVIDIA twins.

Checked against one reference, measured against the machine's limits, counted into whole steps, and
run on a plain CPU by an Ascend 950 emulator. Importing this package imports nothing heavy.
"""

from ascendkit.cann import spare_torch
from ascendkit.op import Case, Contract, Op, Support
from ascendkit.platform import current as current_platform
from ascendkit.platform import use
from ascendkit.registry import components, op, ops

__version__ = "0.1.0"

spare_torch()

__all__ = [
    "Case",
    "Contract",
    "Op",
    "Support",
    "__version__",
    "components",
    "current_platform",
    "op",
    "ops",
    "use",
]
