"""Compiles the kernels that a run on a GPU will need, many at once."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from topk.radix_select import cuda

Shape = tuple[int, int, int, str]
"""Rows, row length, k, dtype."""
BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


def layout_of(shape: Shape) -> tuple[str, object]:
    """Dtype and layout of a shape: what a kernel is compiled for."""
    rows, row_len, k, dtype = shape
    return dtype, cuda.plan(rows, row_len, k, BYTES[dtype])


def compile_one(kernel: tuple[str, object]) -> None:
    """In a process of its own: TileLang's cache on disk hands it on."""
    cuda.kernel(*kernel)


def warm(shapes: Iterable[Shape], processes: int = 14) -> int:
    """Compile; returns how many kernels."""
    kernels = {layout_of(s) for s in shapes}
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        list(pool.map(compile_one, kernels))
    return len(kernels)
