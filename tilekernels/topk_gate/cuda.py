"""topk_gate on NVIDIA GPUs: which layout a shape gets, and the compiled kernel of it."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.gating.cuda_select import MAX_SCORES, PASSES, Plan
from tilekernels.machine import WARP, compile_cuda
from tilekernels.topk_gate.cuda_program import prim_func

if TYPE_CHECKING:
    import torch

MAX_EXPERTS = WARP * MAX_SCORES
FEW_TOKENS = 2048
"""Up to here a whole warp a token is faster, where a token has enough scores for it."""
MANY_TOKENS = 8192
"""From here on the number of instructions counts more than a late warp."""


def plan(num_tokens: int, num_experts: int, num_topk: int) -> Plan:
    """The layout for a shape; chosen on an H200 (docs/topk_gate.md)."""
    half = WARP // 2
    few = num_tokens <= FEW_TOKENS and num_experts > 4 * WARP
    lanes = WARP if few or num_topk > half or num_experts > half * MAX_SCORES else half
    # Wide loads where they leave no lane without a score: idle lanes have no maximum to offer.
    fits = (w for w in (4, 2) if num_experts % w == 0 and num_experts >= w * lanes)
    # Half as many groups again as places, a threshold close to the k-th score; twice that where one
    # late warp is felt, since fewer candidates pass. Many tokens hide a late warp.
    per_place = 3 if FEW_TOKENS < num_tokens <= MANY_TOKENS else 1.5
    groups = math.ceil(per_place * num_topk / lanes)
    capacity = num_topk + (WARP if num_topk <= half else 2 * WARP)
    return Plan(lanes, groups, next(fits, 1), warps=4, capacity=capacity, chained=True)


def supports(case: Case) -> Support:
    """Every legal shape up to ``MAX_EXPERTS`` experts."""
    experts = int(case.params["num_experts"])
    if experts > MAX_EXPERTS:
        return Support(False, f"{experts} experts; a warp holds at most {MAX_EXPERTS}")
    return Support(True)


def run(scores: "torch.Tensor", num_topk: int, *, out: "torch.Tensor") -> None:
    """Fill ``out``, int64 (num_tokens, num_topk), from float32 (num_tokens, num_experts)."""
    num_tokens, num_experts = scores.shape
    kernel(num_experts, num_topk, plan(num_tokens, num_experts, num_topk))(scores, out)


@lru_cache(maxsize=256)
def kernel(num_experts: int, num_topk: int, layout: Plan, arch: str = "") -> Any:
    """The compiled kernel of a shape; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    return compile_cuda(prim_func(num_experts, num_topk, layout), arch, **PASSES)
