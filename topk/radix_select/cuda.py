"""topk on NVIDIA GPUs: what to launch for a shape, and the launch.

A CTA streams a row (or, where rows are few, one of ``splits`` random shares of it) past a threshold
and keeps what passes in shared memory; full shared memory is cut back to the best ``topk``, which
raises the threshold. See docs/topk.md; the programs are in cuda_program.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from topk.radix_select import cuda_format as formats
from topk.radix_select import visit
from topk.radix_select.cuda_program import program

if TYPE_CHECKING:
    import torch

MAX_ROW = 1 << 23
"""Places have 24 bits, and a row may start up to seven elements behind a 16-byte boundary."""
TIERS = ((1024, 6144), (4096, 10240))
"""(largest topk, candidates in shared memory of a CTA of 256 threads)."""
MIN_SHARE = 32768
"""Elements of a row below which another CTA costs more than it saves."""
MAX_SPLITS = 16
SHORT_ROW, SHORT_CAPACITY = 16384, 4096
"""Many rows of up to that length: smaller CTAs, more of them on an SM."""


@dataclass(frozen=True)
class Plan:
    """What is launched.

    Args:
        threads: of a CTA.
        capacity: candidates in its shared memory.
        residents: CTAs an SM holds.
        splits: CTAs that share a row.
    """

    threads: int
    capacity: int
    residents: int
    splits: int


def plan(rows: int, row_len: int, topk: int, num_sms: int = 132) -> Plan:
    """The launch for a shape; measured on an H200 (docs/topk.md)."""
    capacity = next(c for most, c in TIERS if topk <= most)
    narrow = topk <= TIERS[0][0]
    if rows < num_sms:
        splits = max(1, min(-(-num_sms // max(rows, 1)), row_len // MIN_SHARE, MAX_SPLITS))
        if splits > 1:
            return Plan(512 if narrow else 256, capacity, 1, splits)
    elif narrow and row_len <= SHORT_ROW:
        return Plan(128, SHORT_CAPACITY, 6, 1)
    return Plan(256, capacity, 3 if narrow else 2, 1)


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
    layout: Plan | None = None,
) -> None:
    """Fill ``out``; ``layout`` overrides the plan."""
    import torch

    rows, row_len = input.shape
    values, indices = out
    if not row_len:
        indices.fill_(idx_oob_fill_value)
        if values is not None:
            values.fill_(value_oob_fill_value)
        return
    dtype = str(input.dtype).removeprefix("torch.")
    layout = layout or plan(rows, row_len, topk, _num_sms(input.device.index))
    word = torch.int32 if input.element_size() == 4 else torch.int16
    flat = _flat(input).view(word)
    draws = _draws(str(input.device))
    flags = sum(
        bit
        for bit, t in (
            (formats.HAS_BEGIN, begin), (formats.HAS_END, end),
            (formats.HAS_OFFSET, output_idx_offset), (formats.HAS_PAGES, page_table),
            (formats.HAS_VALUES, values),
        )
        if t is not None
    )  # fmt: skip
    order = (
        formats.ORDER_VALUE if sorted
        else formats.ORDER_INDEX if sorted_index
        else formats.ORDER_NONE
    )  # fmt: skip
    ranges = tuple(draws if t is None else t for t in (begin, end))
    extras = (
        draws if output_idx_offset is None else output_idx_offset,
        draws if page_table is None else _flat(page_table),
        flat if values is None else _flat(values).view(word),
        _flat(indices),
    )
    fill = torch.tensor(value_oob_fill_value, dtype=input.dtype).view(word).item()
    numbers = (
        row_len, input.data_ptr() % 16 // input.element_size(), topk, layout.capacity, order,
        flags, page_size, fill, input.stride(0), 0 if values is None else values.stride(0),
        indices.stride(0), 0 if page_table is None else page_table.stride(0), idx_oob_fill_value,
    )  # fmt: skip
    wide = indices.dtype == torch.int64
    if layout.splits == 1:
        role = kernel(dtype, layout, wide, "whole")
        role(flat, *ranges, draws, *extras, draws, draws, rows, 1, *numbers)
        return
    shares = torch.empty(rows * layout.splits * topk * 2, dtype=torch.int32, device=input.device)
    floors = torch.empty(rows * layout.splits, dtype=torch.int32, device=input.device)
    share = kernel(dtype, layout, wide, "share")
    share(flat, *ranges, draws, *extras, shares, floors, rows, layout.splits, *numbers)
    merge = kernel(dtype, layout, wide, "merge")
    merge(flat, *ranges, *extras, shares, floors, rows, layout.splits, *numbers)


def kernel(dtype: str, layout: Plan, wide: bool, role: str, arch: str = "") -> Any:
    """The compiled kernel; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    # A merge has an SM for itself.
    threads, residents = (1024, 1) if role == "merge" else (layout.threads, layout.residents)
    return _kernel(dtype, threads, layout.capacity, residents, wide, role, arch)


@lru_cache(maxsize=64)
def _kernel(
    dtype: str, threads: int, capacity: int, residents: int, wide: bool, role: str, arch: str
) -> Any:
    import tilelang

    blocks = (MAX_ROW + 7) // formats.block_elements(dtype, threads) + 1
    made = program(dtype, capacity, threads, residents, blocks, wide, role)
    target = {"kind": "cuda", "arch": arch} if arch else "cuda"
    return tilelang.compile(made, target=target, pass_configs=pass_configs())


def pass_configs() -> dict[str, bool]:
    """Which of TileLang's passes the programs do without."""
    from tilelang import PassConfigKey as Key

    return {
        # Barriers are placed by hand: the counters are shared on purpose.
        Key.TL_DISABLE_THREAD_STORAGE_SYNC.value: True,
        Key.TL_DISABLE_WARP_SPECIALIZED.value: True,
        # Edges of a row are guarded where they are loaded.
        Key.TL_DISABLE_SAFE_MEMORY_ACCESS.value: True,
    }


def _flat(t: torch.Tensor) -> torch.Tensor:
    """All elements from the first to the last that ``t`` reaches, as one dimension."""
    reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1 if t.numel() else 0
    return t.as_strided((reach,), (1,))


@lru_cache(maxsize=8)
def _draws(device: str) -> torch.Tensor:
    import torch

    most = 1 << (MAX_ROW // formats.block_elements("bfloat16", 256)).bit_length()
    return torch.from_numpy(visit.process_table(most)).to(device)


@lru_cache(maxsize=8)
def _num_sms(index: int | None) -> int:
    import torch

    return int(torch.cuda.get_device_properties(index or 0).multi_processor_count)
