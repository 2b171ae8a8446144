"""reduce by scalar loops in NumPy; the rounding to bf16 by integer arithmetic."""

import numpy as np


def oracle(rows, table, bias_0=None, bias_1=None):
    """float32 additions one token and choice at a time; returns the bits of bf16."""
    out = np.zeros((len(table), rows.shape[1]), np.float32)
    for t, line in enumerate(table):
        for bias in (bias_0, bias_1):
            if bias is not None:
                out[t] = np.add(out[t], bias[t], dtype=np.float32)
        for row in line:
            if row >= 0:
                out[t] = np.add(out[t], rows[row], dtype=np.float32)
    bits = out.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = np.isnan(out)
    return np.where(nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)
