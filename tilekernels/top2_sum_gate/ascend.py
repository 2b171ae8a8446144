"""top2_sum_gate on the Ascend 950: the gate program of ``tilekernels/gating`` with groups."""

from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.gating import ascend_gate
from tilekernels.top2_sum_gate.cuda import experts_per_rank, gate_of

if TYPE_CHECKING:
    import torch


def supports(case: Case) -> Support:
    """As ``moe_topk_gate``."""
    return ascend_gate.supports(int(case.params["num_experts"]))


def run(*args: Any, out: "tuple[torch.Tensor, torch.Tensor]") -> None:
    """Fill (topk_idx, topk_weights), and ``unmapped_topk_idx``."""
    names = ("mask", "fixed", "physical", "count", "unmapped")
    given = {"logits": args[0], "bias": args[1], **dict(zip(names, args[13:], strict=True))}
    local = (experts_per_rank(args), args[10], args[11])
    ascend_gate.launch(gate_of(args), given, out, args[7], args[8], local)
