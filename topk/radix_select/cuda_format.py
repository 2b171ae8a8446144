"""What the CUDA kernels of topk agree on: flags, formats, shared memory."""

ORDER_NONE, ORDER_VALUE, ORDER_INDEX = 0, 1, 2
HAS_BEGIN, HAS_END, HAS_OFFSET, HAS_PAGES, HAS_VALUES, HAS_WIDE = 1, 2, 4, 8, 16, 32

FORMATS = {"bfloat16": ("Bf16", 2), "float16": ("Fp16", 2), "float32": ("Fp32", 4)}
"""Name in keys.cuh and bytes of an element."""
SHARED_OF_CTA = {1: 232448, 2: 115712}
"""Bytes of shared memory a CTA may have where so many share an SM (228 KiB, 1 KiB of it a CTA)."""
