"""moe_topk_gate on the Ascend 950: the gate program of ``tilekernels/gating`` for the options."""

from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.gating import ascend_gate
from tilekernels.moe_topk_gate.cuda import gate_of

if TYPE_CHECKING:
    import torch


def supports(case: Case) -> Support:
    """Every legal shape whose token fits the Unified Buffer."""
    return ascend_gate.supports(int(case.params["num_experts"]))


def run(*args: Any, out: "tuple[torch.Tensor, torch.Tensor]") -> None:
    """Fill (topk_idx, topk_weights), and what of the arguments is written."""
    names = ("mask", "bias", "image_bias", "image", "fixed", "physical", "count", "unmapped",
             "random", "scores")  # fmt: skip
    given = {"logits": args[0], **dict(zip(names, args[7:], strict=True))}
    ascend_gate.launch(gate_of(args), given, out, args[4], args[5])
