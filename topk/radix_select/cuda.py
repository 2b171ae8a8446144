"""topk on NVIDIA GPUs: what to launch for a shape, and the launch. See docs/topk.md."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from topk.radix_select import cuda_format as formats
from topk.radix_select import cuda_resident, cuda_stream, visit
from topk.radix_select.cuda_program import program
from topk.radix_select.cuda_resident import Resident
from topk.radix_select.cuda_stream import Layout

if TYPE_CHECKING:
    import torch

MAX_ROW = 1 << 23
"""Places have 24 bits, and a row may start up to seven elements behind a 16-byte boundary."""


def plan(
    rows: int, row_len: int, topk: int, element_bytes: int, num_sms: int = 132
) -> Layout | Resident:
    """The kernel and its layout for a shape; measured on an H200 (docs/topk.md)."""
    resident = cuda_resident.fit(rows, row_len, topk, element_bytes)
    return resident or cuda_stream.layout(rows, row_len, topk, element_bytes, num_sms)


def supports(case: Case) -> Support:
    """Every legal shape with rows up to ``MAX_ROW``."""
    row_len = int(case.params["row_len"])
    if row_len > MAX_ROW:
        return Support(False, f"rows of {row_len}; at most {MAX_ROW} fit its 24-bit places")
    return Support(True)


def run(
    input: torch.Tensor,
    topk: int,
    sorted: bool,
    begin: torch.Tensor | None,
    end: torch.Tensor | None,
    indices_type: Any,
    sorted_index: bool,
    hint: None,
    output_idx: None,
    output_idx_offset: torch.Tensor | None,
    idx_oob_fill_value: int,
    value_oob_fill_value: float,
    return_value: bool,
    page_table: torch.Tensor | None,
    page_size: int,
    *,
    out: tuple[torch.Tensor | None, torch.Tensor],
    layout: Layout | Resident | None = None,
) -> None:
    """Fill ``out``; ``layout`` overrides the plan."""
    import torch

    rows, row_len = input.shape
    values, indices = out
    if not rows:
        return
    if not row_len:
        indices.fill_(idx_oob_fill_value)
        if values is not None:
            values.fill_(value_oob_fill_value)
        return
    size = input.element_size()
    word = torch.int32 if size == 4 else torch.int16
    flat = _flat(input).view(word)
    draws = _draws(str(input.device))
    wide = indices.dtype == torch.int64
    flags = sum(
        bit
        for bit, t in (
            (formats.HAS_BEGIN, begin), (formats.HAS_END, end),
            (formats.HAS_OFFSET, output_idx_offset), (formats.HAS_PAGES, page_table),
            (formats.HAS_VALUES, values), (formats.HAS_WIDE, wide or None),
        )
        if t is not None
    )  # fmt: skip
    order = (
        formats.ORDER_VALUE if sorted
        else formats.ORDER_INDEX if sorted_index
        else formats.ORDER_NONE
    )  # fmt: skip
    tensors = (
        flat, *(draws if t is None else t for t in (begin, end)), draws,
        draws if output_idx_offset is None else output_idx_offset,
        draws if page_table is None else _flat(page_table),
        flat if values is None else _flat(values).view(word), _flat(indices).view(torch.int32),
    )  # fmt: skip
    fill = torch.tensor(value_oob_fill_value, dtype=input.dtype).view(word).item()
    numbers = (
        rows, row_len, input.data_ptr() % 16 // size, topk, order, flags, page_size, fill,
        input.stride(0), 0 if values is None else values.stride(0), indices.stride(0),
        0 if page_table is None else page_table.stride(0), idx_oob_fill_value,
    )  # fmt: skip
    sms = _num_sms(input.device.index)
    layout = layout or plan(rows, row_len, topk, size, sms)
    made = kernel(str(input.dtype).removeprefix("torch."), layout)
    made(*tensors, layout.ctas(rows, sms), *numbers)


@lru_cache(maxsize=64)
def kernel(dtype: str, layout: Layout | Resident, arch: str = "") -> Any:
    """The compiled kernel; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    import tilelang
    from tilelang import PassConfigKey as Key

    size = formats.FORMATS[dtype][1]
    made = program(
        size, layout.threads, layout.cluster, layout.residents, layout.shared_bytes(size),
        layout.source(dtype),
    )  # fmt: skip
    target = {"kind": "cuda", "arch": arch} if arch else "cuda"
    # The program is one call: there is nothing to place barriers in, nor to split by warps.
    without = (Key.TL_DISABLE_THREAD_STORAGE_SYNC, Key.TL_DISABLE_WARP_SPECIALIZED)
    return tilelang.compile(made, target=target, pass_configs={k.value: True for k in without})


def _flat(t: torch.Tensor) -> torch.Tensor:
    """All elements from the first to the last that ``t`` reaches, as one dimension."""
    reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1 if t.numel() else 0
    return t.as_strided((reach,), (1,))


@lru_cache(maxsize=8)
def _draws(device: str) -> torch.Tensor:
    """Random orders, up to the longest row in the smallest blocks."""
    import torch

    most = 1 << (MAX_ROW // cuda_stream.SMALLEST_BLOCK).bit_length()
    return torch.from_numpy(visit.process_table(most)).to(device)


@lru_cache(maxsize=8)
def _num_sms(index: int | None) -> int:
    import torch

    return int(torch.cuda.get_device_properties(index or 0).multi_processor_count)
