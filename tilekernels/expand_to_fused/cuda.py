"""expand_to_fused on NVIDIA GPUs: which program a call gets, and the compiled kernel of it."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.expand_to_fused.cuda_program import BULK, Plan, Scales, prim_func
from tilekernels.machine import compile_cuda, grain

if TYPE_CHECKING:
    import torch

MIN_BULK_BYTES = 512
"""Shorter rows are moved through registers."""


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
    layout = plan(row, grain(row, x, out))
    found = kernel(row, token_topk_to_pos.shape[1], layout)
    blocks = num_blocks(layout, x, out)
    found(words(x, layout), token_topk_to_pos, pos_to_expert, words(out, layout), blocks)


def plan(row_bytes: int, grain: int) -> Plan:
    """The layout for a row size and the alignment of rows."""
    return Plan(grain, grain == BULK and row_bytes >= MIN_BULK_BYTES)


def words(rows: "torch.Tensor", layout: Plan) -> "torch.Tensor":
    """Rows as words of the width the program moves."""
    import torch

    return rows.view({1: torch.int8, 2: torch.int16}.get(layout.grain, torch.int32))


def num_blocks(layout: Plan, x: "torch.Tensor", out: "torch.Tensor") -> int:
    """Blocks of a launch: some an SM, or one a token; enough for the rows of zeros too."""
    sms = _sms(x.device.index or 0)
    if layout.blocks_per_sm:
        return min(layout.blocks_per_sm * sms, max(len(x), len(out)))
    return max(len(x), min(len(out), 8 * sms))


@lru_cache(maxsize=16)
def _sms(device: int) -> int:
    import torch

    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@lru_cache(maxsize=256)
def kernel(
    row_bytes: int, num_topk: int, layout: Plan, scales: Scales | None = None, arch: str = ""
) -> Any:
    """The compiled kernel of a shape; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    # The program orders its own shared memory; a block barrier would part the warps that move rows
    # from the one that moves scales.
    program = prim_func(row_bytes, num_topk, layout, scales)
    return compile_cuda(program, arch, TL_DISABLE_THREAD_STORAGE_SYNC=True)
