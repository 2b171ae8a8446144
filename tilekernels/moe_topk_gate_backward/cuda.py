"""moe_topk_gate_backward on NVIDIA GPUs: a warp a token."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import WARP, compile_cuda, grain
from tilekernels.moe_topk_gate_backward.cuda_program import Form, prim_func

if TYPE_CHECKING:
    import torch

MAX_EXPERTS = 64 * WARP
"""Scores are kept in registers, 64 a lane."""
FEW_TOKENS = 1024
"""Up to here blocks of one warp, so that all multiprocessors have some."""


def supports(case: Case) -> Support:
    """Every legal shape up to ``MAX_EXPERTS`` experts."""
    experts = int(case.params["num_experts"])
    if experts > MAX_EXPERTS:
        return Support(False, f"{experts} experts; a warp holds at most {MAX_EXPERTS}")
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
    tokens, experts = scores.shape
    aux = grad_scores_sum is not None
    given = (scores, out, grad_scores_sum) if aux else (scores, out)
    width = grain(4 * experts, *given) // 4
    slots = topk_weights.shape[1], grad_topk_weights.shape[1]
    warps = 1 if tokens <= FEW_TOKENS else 4
    form = Form(experts, topk_idx.shape[1], *slots, scoring_func, aux, width, warps)
    per_sequence = tokens // len(grad_scores_sum) if aux else 1
    kernel(form)(
        scores, topk_idx, topk_weights, grad_topk_weights, mask, grad_scores_sum, out,
        routed_scaling_factor, per_sequence,
    )  # fmt: skip


@lru_cache(maxsize=256)
def kernel(form: Form, arch: str = "") -> Any:
    """The compiled kernel of a form; ``arch`` compiles where no GPU is."""
    # Rows in shared memory are private to a warp, ordered by T.sync_warp.
    return compile_cuda(prim_func(form), arch, TL_DISABLE_THREAD_STORAGE_SYNC=True)
