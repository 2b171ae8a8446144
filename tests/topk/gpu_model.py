"""The CUDA files of topk compiled for this CPU, a fiber a thread: their logic, not their speed."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import torch

FORMATS = {torch.bfloat16: 0, torch.float16: 1, torch.float32: 2}
ORDERS = {"none": 0, "sorted": 1, "sorted_index": 2}
HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "topk" / "radix_select" / "gpu"


class Arguments(ctypes.Structure):
    """``ak::Arguments``."""

    _fields_ = [
        *((n, ctypes.c_void_p) for n in ("input", "begin", "end", "draws", "offset", "pages")),
        *((n, ctypes.c_void_p) for n in ("values", "indices")),
        *((n, ctypes.c_int) for n in ("rows", "row_len", "misaligned", "topk", "order", "flags")),
        ("page_size", ctypes.c_int),
        ("value_fill", ctypes.c_uint),
        *((n, ctypes.c_longlong) for n in ("stride", "values_stride", "indices_stride")),
        *((n, ctypes.c_longlong) for n in ("pages_stride", "index_fill")),
    ]


def build(folder: Path) -> Any:
    """The shared library, through g++."""
    out = folder / "gpu_model.so"
    command = ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", f"-I{SOURCES}", f"-I{HERE}"]
    subprocess.run([*command, str(HERE / "gpu_model.cpp"), "-o", str(out)], check=True)
    return ctypes.CDLL(str(out))


def select(
    library: Any,
    x: torch.Tensor,
    k: int,
    draws: torch.Tensor,
    *,
    order: str = "none",
    begin: torch.Tensor | None = None,
    end: torch.Tensor | None = None,
    offset: torch.Tensor | None = None,
    pages: torch.Tensor | None = None,
    page_size: int = 1,
    wide: bool = True,
    cluster: int = 1,
    teams: int = 1,
    seed: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(values, indices) of one launch of ``teams`` clusters; a bulk copy beyond ``x`` aborts."""
    rows, row_len = x.shape
    values = torch.full((rows, k), 7, dtype=x.dtype)
    indices = torch.full((rows, k), -7, dtype=torch.int64 if wide else torch.int32)
    optional = (begin, end, offset, pages)
    flags = 16 + 32 * wide + sum(bit for bit, t in zip((1, 2, 4, 8), optional) if t is not None)
    begin_, end_, offset_, pages_ = (None if t is None else t.data_ptr() for t in optional)
    size = x.element_size()
    word = {2: torch.int16, 4: torch.int32}[size]
    fill = int(torch.tensor(float("-inf"), dtype=x.dtype).view(word)) & ((1 << 8 * size) - 1)
    arguments = Arguments(
        x.data_ptr(), begin_, end_, draws.data_ptr(), offset_, pages_, values.data_ptr(),
        indices.data_ptr(), rows, row_len, x.data_ptr() % 16 // size, k, ORDERS[order], flags,
        page_size, fill, x.stride(0), k, k, 0 if pages is None else pages.stride(0), 2**31 - 1,
    )  # fmt: skip
    low = x.data_ptr()
    reach = (rows - 1) * x.stride(0) + row_len
    library.select_on_cpu(
        ctypes.byref(arguments), FORMATS[x.dtype], cluster, teams * cluster, seed,
        ctypes.c_longlong(low), ctypes.c_longlong(low + reach * size),
    )  # fmt: skip
    return values, indices
