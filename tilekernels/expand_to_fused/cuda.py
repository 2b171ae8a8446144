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
SHORT_ROW, LONG_ROW = 8192, 16384
"""Bytes up to which rows are fetched; those longer than a short one only by few blocks an SM, and
only where hardly any block has nothing but zeros to write. Found on an H200: docs/gate.md."""
FEW_BLOCKS_ROOM = 45_500
"""Bytes of shared memory of which an SM has five times as many."""
FEW_GAPS = 8
"""Positions a block looks at where at most one in as many is without an expert."""


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
    layout = plan(row, grain(row, x, out), len(out), token_topk_to_pos.numel())
    found = kernel(row, token_topk_to_pos.shape[1], layout)
    maps = (token_topk_to_pos, pos_to_expert)
    found(words(x, layout), *maps, words(out, layout), num_blocks(layout, x, out))


def plan(row_bytes: int, grain: int, positions: int, entries: int) -> Plan:
    """The layout for a row size, the alignment of rows, and how many positions entries can fill."""
    count = -(-row_bytes // grain)
    threads = next((t for t in (WARP, 64, 128, 256) if count <= t * MAX_HELD), 256)
    # A block for every position shares rows of zeros evenly, and costs where there are few.
    dense = FEW_GAPS * (positions - entries) <= positions
    looks = FEW_GAPS if dense else 1
    if grain < WIDE or row_bytes > (LONG_ROW if dense else SHORT_ROW):
        return Plan(grain, threads, grain >= WIDE, 0, looks)
    # A power of two, and no less than the rows that one block fetches.
    ahead = max(1 << (AHEAD_BYTES // row_bytes).bit_length() >> 1, FETCHED)
    room = FEW_BLOCKS_ROOM if row_bytes > SHORT_ROW else 0
    return Plan(grain, threads, True, ahead, looks, room)


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
