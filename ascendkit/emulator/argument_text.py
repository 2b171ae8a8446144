"""Kernel arguments on a command line: ``3``, ``x=float32[4,64]=randn``, ``int8[16]=a.npy``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ascendkit.emulator.source import Parameter
from ascendkit.errors import bad_value, unknown

_TENSOR = re.compile(r"(\w+)\[([\d, ]*)\]=(.+)")
_FILLS = ("arange", "ones", "randint", "randn", "zeros")


def parse(texts: Sequence[str], parameters: Sequence[Parameter]) -> list[Any]:
    """One value per parameter, by position or by name.

    Raises:
        ValueError: malformed text, unknown name, dtype or fill, a parameter missing or given twice.
    """
    names = [p.name for p in parameters]
    given: dict[str, Any] = {}
    for position, text in enumerate(texts):
        name, rest = _split(text, names)
        if name is None:
            if position >= len(names):
                raise bad_value("arguments", len(texts), f"{len(names)} ({', '.join(names)})")
            name = names[position]
        if name in given:
            raise ValueError(f"argument {name}: given twice")
        given[name] = _value(name, rest)
    missing = [n for n in names if n not in given]
    if missing:
        raise ValueError(f"missing arguments: {', '.join(missing)}")
    for p in parameters:
        if p.pointer and isinstance(given[p.name], (int, float)):
            raise bad_value(
                f"argument {p.name}", given[p.name], "a tensor", f"{p.name}=float32[128]=randn"
            )
    return [given[n] for n in names]


def _split(text: str, names: Sequence[str]) -> tuple[str | None, str]:
    head, equals, rest = text.partition("=")
    if not equals or "[" in head:
        return None, text
    if head not in names:
        raise unknown("argument", head, names)
    return head, rest


def _value(name: str, text: str) -> Any:
    match = _TENSOR.fullmatch(text)
    if match:
        return _tensor(name, *match.groups())
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise bad_value(
            f"argument {name}", text, "a number or dtype[shape]=fill", "float32[128]=randn"
        ) from None


def _tensor(name: str, dtype_name: str, shape_text: str, fill: str) -> Any:
    import torch

    dtype = getattr(torch, dtype_name, None)
    if not isinstance(dtype, torch.dtype):
        legal = [n for n in dir(torch) if isinstance(getattr(torch, n), torch.dtype)]
        raise unknown(f"argument {name}: dtype", dtype_name, legal)
    shape = [int(n) for n in shape_text.split(",") if n.strip()]
    if fill.endswith(".npy"):
        import numpy

        return torch.from_numpy(numpy.load(fill)).to(dtype).reshape(shape).contiguous()
    if fill not in _FILLS:
        raise unknown(f"argument {name}: fill", fill, _FILLS)
    if fill == "randn":
        return torch.randn(shape).to(dtype)
    if fill == "randint":
        return torch.randint(0, 100, shape).to(dtype)
    if fill == "arange":
        return torch.arange(torch.Size(shape).numel()).to(dtype).reshape(shape)
    return (torch.zeros if fill == "zeros" else torch.ones)(shape).to(dtype)
