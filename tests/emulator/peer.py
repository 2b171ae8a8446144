"""Imports the tile-kernels package as code on an NPU would: inside ``as_npu()``, from scratch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from ascendkit.emulator import as_npu

QUANT = [
    "batched_transpose_weight_sf",
    "cast",
    "cast_back",
    "norm_backward",
    "norm_forward",
    "per_block_cast",
    "per_block_cast_lossless",
    "per_channel_cast",
    "per_token_cast",
    "per_token_cast_and_cast_back",
    "swiglu_backward",
    "swiglu_forward",
]
MOE = ["moe_topk_gate_backward", "moe_topk_gate_forward", "normalize_weight", "topk_gate"]


@contextmanager
def tile_kernels() -> Iterator[SimpleNamespace]:
    """Wrappers as attributes, references as ``ref_cast``, ``ref_swiglu``, ..."""
    aside = {n: sys.modules.pop(n) for n in list(sys.modules) if n.startswith("tile_kernels")}
    try:
        with as_npu():
            found = SimpleNamespace()
            for folder, names in (("quant", QUANT), ("moe", MOE)):
                for name in names:
                    module = importlib.import_module(f"tile_kernels.{folder}.{name}_kernel")
                    found.__dict__.update(
                        {k: v for k, v in vars(module).items() if not k.startswith("_")}
                    )
            found.cast = importlib.import_module("tile_kernels.quant.cast_kernel").cast
            for name in ("cast", "swiglu", "norm", "topk", "moe"):
                module = importlib.import_module(f"tile_kernels.torch.{name}")
                setattr(found, f"ref_{name}", module)
            yield found
    finally:
        for name in [n for n in sys.modules if n.startswith("tile_kernels")]:
            del sys.modules[name]
        sys.modules.update(aside)
