"""topk on the Ascend 950: what to launch for a shape, the launch, and the epilogue.

A vector core takes a row; where rows are fewer than cores, long rows are cut into shares whose
results a second launch merges. Orders, fills and selection happen on the vector cores; offsets,
page tables and 64-bit indices are torch operations behind the launch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES
from ascendkit.op import Case, Support
from topk.radix_select import ascend_program as programs
from topk.radix_select import visit

if TYPE_CHECKING:
    import torch

MAX_ROW = programs.MAX_ROW
MIN_SHARE = 16384
"""Elements of a row below which another core costs more than it saves."""
MISSING = -1


def supports(case: Case) -> Support:
    """Every legal shape with rows up to ``MAX_ROW``."""
    row_len = int(case.params["row_len"])
    if row_len > MAX_ROW:
        return Support(False, f"rows of {row_len}; the visit order in UB ends at {MAX_ROW}")
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
    splits: int | None = None,
) -> None:
    """Fill ``out``; ``splits`` overrides the plan where the row has no range."""
    import torch

    values, indices = out
    rows, row_len = input.shape
    order = (
        programs.ORDER_VALUE if sorted
        else programs.ORDER_INDEX if sorted_index
        else programs.ORDER_NONE
    )  # fmt: skip
    if begin is not None or end is not None:
        splits = 1
    elif splits is None:
        splits = _splits(input, topk, _vector_cores(input))
    word = torch.int32 if input.element_size() == 4 else torch.uint16
    source = input.view(word) if row_len else input.new_zeros((rows, 1)).view(word)
    ranges = _ranges(input, begin, end, splits)
    if splits == 1:
        raws, ats = _launch(source, ranges, topk, order, 1, input)
    else:
        # Shares in the order of their indices, so that places in the list of all break ties.
        raws, ats = _launch(source, ranges, topk, programs.ORDER_INDEX, splits, input)
        again = raws.view(rows, splits * topk).to(word)
        raws, places = _launch(again, _ranges(again, None, None, 1), topk, order, 1, input)
        ats = ats.view(rows, splits * topk).gather(1, places.long())
    missing = ats == MISSING
    found = ats.long().masked_fill(missing, 0)
    if page_table is not None:
        found = page_table.long().gather(1, found // page_size) * page_size + found % page_size
    if output_idx_offset is not None:
        found = found + output_idx_offset.long()[:, None]
    indices.copy_(found.masked_fill(missing, idx_oob_fill_value))
    if values is not None:
        bits = raws if word == torch.int32 else raws.to(torch.uint16)
        values.copy_(bits.view(input.dtype).masked_fill(missing, value_oob_fill_value))


def _launch(
    source: torch.Tensor, ranges: torch.Tensor, topk: int, order: int, splits: int, like: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    dtype = str(like.dtype).removeprefix("torch.")
    raws = torch.empty((len(ranges), topk), dtype=torch.int32, device=source.device)
    ats = torch.empty_like(raws)
    word = str(source.dtype).removeprefix("torch.")
    program = kernel(word, _vector_cores(source), source.device.type == "cpu")
    draws = _draws(str(source.device), _most_pages(source))
    limits = (programs.limit(topk), programs.INF[dtype])
    program(source, ranges, draws, raws, ats, splits, order, *limits, MISSING, 0)
    return raws, ats


@lru_cache(maxsize=8)
def kernel(word: str, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel for words of the input; one for the NPU and one for the emulator."""
    import tilelang

    taken = programs.ub_bytes(word)
    if taken > UB_BYTES:
        raise ValueError(f"topk: got {taken} bytes of Unified Buffer, wanted at most {UB_BYTES}")
    return tilelang.compile(programs.program(word, num_cores), target="ascend")


def _splits(input: torch.Tensor, topk: int, num_cores: int) -> int:
    """Shares of a row: no core idle, none with less than ``MIN_SHARE`` or ``topk`` elements."""
    rows, row_len = input.shape
    shortest = _whole(max(MIN_SHARE, topk), _page(input))
    return max(1, min(num_cores // max(rows, 1), row_len // shortest))


def _ranges(input: torch.Tensor, begin: Any, end: Any, splits: int) -> torch.Tensor:
    """int32 (jobs, 8): first, one past the last, entries of the order, where pages start."""
    import torch

    rows, row_len = input.shape
    page = _page(input)
    # Whole pages, as even as they go: no share has fewer elements than are wanted, since the merge
    # takes what is missing for a candidate.
    whole = -(-row_len // page)
    at = torch.arange(splits + 1, dtype=torch.int32, device=input.device) * whole // splits * page
    at = at.clamp(max=row_len)
    low, high = at[:-1].repeat(rows), at[1:].repeat(rows)
    if begin is not None:
        low = begin.clamp(0, row_len)
    if end is not None:
        high = end.clamp(0, row_len)
    # Copies are in whole 32-byte blocks of the row, so pages start where such a block does.
    first = low // 16 * 16
    pages = ((high - first).clamp(min=1) + page - 1) // page
    entries = torch.ones_like(pages)
    for _ in range(_most_pages(input).bit_length() - 1):
        entries = torch.where(entries < pages, entries * 2, entries)
    out = torch.zeros((rows * splits, 8), dtype=torch.int32, device=input.device)
    for column, values in enumerate((low, high, entries, first)):
        out[:, column] = values
    return out


def _whole(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def _page(input: torch.Tensor) -> int:
    return programs.PAGE["int32" if input.element_size() == 4 else "uint16"]


def _most_pages(input: torch.Tensor) -> int:
    return 1 << max(-(-input.shape[1] // _page(input)) - 1, 0).bit_length()


@lru_cache(maxsize=64)
def _draws(device: str, most: int) -> torch.Tensor:
    import torch

    # A prefix of one table: entries p to 2p permute range(p).
    whole = visit.process_table(programs.max_pages("int32"))
    return torch.from_numpy(whole[: 2 * most].copy()).to(device)


def _vector_cores(t: torch.Tensor) -> int:
    if t.device.type == "cpu":
        from ascendkit.emulator.kernel import CORES

        return 2 * CORES
    import torch

    return 2 * int(torch.npu.get_device_properties(t.device).cube_core_num)
