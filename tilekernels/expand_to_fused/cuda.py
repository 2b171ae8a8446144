"""expand_to_fused on NVIDIA GPUs: which layout a call gets, and the compiled kernel of it."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.expand_to_fused.cuda_program import (
    FETCHED,
    MAX_HELD,
    WIDE,
    Plan,
    Scales,
    prim_func,
)
from tilekernels.machine import WARP, compile_cuda, grain

if TYPE_CHECKING:
    import torch

AHEAD_BYTES = 7_500_000
"""Most bytes of rows that are fetched together."""
AHEAD_ROW = 8192
"""Longer rows are not fetched: a block reads enough at once."""
FEW_GAPS = 8
"""Positions a block looks at where few, or none, are without an expert."""


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(
    x: "torch.Tensor",
    token_topk_to_pos: "torch.Tensor",
    pos_to_expert: "torch.Tensor",
    *,
    out: "torch.Tensor",
) -> None:
    """Fill ``out`` (num_expanded_tokens, hidden)."""
    row = x.shape[1] * x.element_size()
    layout = plan(row, grain(row, x, out), len(out) - token_topk_to_pos.numel())
    found = kernel(row, token_topk_to_pos.shape[1], layout)
    maps = (token_topk_to_pos, pos_to_expert)
    found(words(x, layout), *maps, words(out, layout), num_blocks(layout, x, out))


def plan(row_bytes: int, grain: int, gaps: int) -> Plan:
    """The layout for a row size, the alignment of rows, and how many positions surely are empty."""
    count = -(-row_bytes // grain)
    threads = next((t for t in (WARP, 64, 128, 256) if count <= t * MAX_HELD), 256)
    # Rows of zeros are shared out evenly only if a block has one.
    positions = 1 if gaps > 0 else FEW_GAPS
    if grain < WIDE:
        return Plan(grain, threads, False, 0, positions)
    # A power of two, and no less than the rows that one block fetches.
    ahead = 1 << (AHEAD_BYTES // row_bytes).bit_length() >> 1
    ahead = ahead if row_bytes <= AHEAD_ROW and ahead >= FETCHED else 0
    return Plan(grain, threads, True, ahead, positions)


def words(rows: "torch.Tensor", layout: Plan) -> "torch.Tensor":
    """Rows as words of the width the program moves."""
    import torch

    return rows.view({1: torch.int8, 2: torch.int16}.get(layout.grain, torch.int32))


def num_blocks(layout: Plan, x: "torch.Tensor", out: "torch.Tensor") -> int:
    """Blocks of a launch: for every token, and for every position of the result."""
    return max(len(x), -(-len(out) // layout.positions))


@lru_cache(maxsize=256)
def kernel(
    row_bytes: int, num_topk: int, layout: Plan, scales: Scales | None = None, arch: str = ""
) -> Any:
    """The compiled kernel of a shape; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    return compile_cuda(prim_func(row_bytes, num_topk, layout, scales), arch)
