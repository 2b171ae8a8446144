"""moe_topk_gate_backward on the Ascend 950: all in vector registers, row by row of a tile."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES
from ascendkit.op import Case, Support
from tilekernels.machine import compile_ascend, vector_cores
from tilekernels.moe_topk_gate_backward.ascend_program import (
    Form,
    prim_func,
    rows_per_tile,
    ub_bytes,
)

if TYPE_CHECKING:
    import torch


def supports(case: Case) -> Support:
    """Every legal shape whose token fits the Unified Buffer."""
    experts = int(case.params["num_experts"])
    need = ub_bytes(experts, 1)
    if need > UB_BYTES:
        what = f"{experts} experts: a token takes {need} bytes"
        return Support(False, f"{what} of the {UB_BYTES} there are")
    return Support(True)


def run(
    scores: "torch.Tensor",
    topk_idx: "torch.Tensor",
    topk_weights: "torch.Tensor",
    grad_topk_weights: "torch.Tensor",
    routed_scaling_factor: float,
    scoring_func: str,
    mask: "torch.Tensor | None",
    grad_scores_sum: "torch.Tensor | None",
    *,
    out: "torch.Tensor",
) -> None:
    """Fill ``out`` float32 (num_tokens, num_experts)."""
    import torch

    aux = grad_scores_sum is not None
    per_sequence = len(scores) // len(grad_scores_sum) if aux else len(scores)
    slots = topk_weights.shape[1], grad_topk_weights.shape[1]
    cores = vector_cores(out)
    rows = min(rows_per_tile(scores.shape[1]), -(-len(scores) // cores), per_sequence)
    parts = -(-per_sequence // rows)
    form = Form(scores.shape[1], topk_idx.shape[1], *slots, scoring_func, aux)
    seen = None if mask is None else mask.view(torch.uint8)
    kernel(form, cores, out.device.type == "cpu")(
        scores, topk_idx.view(torch.int32), topk_weights, grad_topk_weights, seen, grad_scores_sum,
        out, routed_scaling_factor, per_sequence, rows, parts, len(scores) // per_sequence * parts,
    )  # fmt: skip


@lru_cache(maxsize=256)
def kernel(form: Form, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(form, num_cores))
