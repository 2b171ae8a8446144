"""Torch values as packed arguments of a TileLang host function."""

from __future__ import annotations

from functools import cache
from typing import Any

from ascendkit.emulator.host import TENSOR, Argument
from ascendkit.errors import bad_type


@cache
def _codes() -> dict[Any, tuple[int, int, str]]:
    """Torch dtype -> (DLPack type code, bits, name)."""
    import torch

    table = {
        "int8": (0, 8),
        "int16": (0, 16),
        "int32": (0, 32),
        "int64": (0, 64),
        "uint8": (1, 8),
        "uint16": (1, 16),
        "uint32": (1, 32),
        "uint64": (1, 64),
        "float16": (2, 16),
        "float32": (2, 32),
        "float64": (2, 64),
        "bfloat16": (4, 16),
        "bool": (6, 8),
        "float8_e4m3fn": (10, 8),
        "float8_e5m2": (12, 8),
        "float8_e8m0fnu": (14, 8),
        "float4_e2m1fn_x2": (17, 4),
    }
    return {
        getattr(torch, name): (*row, name) for name, row in table.items() if hasattr(torch, name)
    }


def pack(name: str, value: Any, *, meta: bool = False) -> Argument:
    """One argument; ``meta`` also takes tensors without memory.

    Raises:
        TypeError: neither a CPU tensor nor a number, or a dtype kernels do not have.
    """
    import torch

    if value is None:
        return Argument(None, 0)
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu" and not (meta and value.device.type == "meta"):
            raise TypeError(
                f"{name}: got a tensor on {value.device}, wanted cpu: this kernel was compiled for "
                "the emulator"
            )
        row = _codes().get(value.dtype)
        if row is None:
            raise TypeError(f"{name}: got dtype {value.dtype}, which no kernel parameter has")
        argument = Argument(
            value=None,
            type_index=TENSOR,
            data=value,
            shape=list(value.shape),
            strides=list(value.stride()),
            ndim=value.dim(),
            code=row[0],
            bits=row[1],
            lanes=2 if row[2].endswith("_x2") else 1,
            dtype_name=row[2],
        )
        argument.value = argument
        return argument
    if isinstance(value, bool):
        return Argument(value, 2)
    if isinstance(value, int):
        return Argument(value, 1)
    if isinstance(value, float):
        return Argument(value, 3)
    raise bad_type(name, value, "a torch tensor or a number")
