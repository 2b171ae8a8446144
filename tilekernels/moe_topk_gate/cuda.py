"""moe_topk_gate on NVIDIA GPUs: the gate program of ``tilekernels/gating`` for a call's options."""

from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.gating.cuda_gate import MAX_EXPERTS, kernel, plan
from tilekernels.gating.gate import Gate
from tilekernels.gating.scoring import MAX_SUMMED

if TYPE_CHECKING:
    import torch

assert MAX_EXPERTS <= MAX_SUMMED


def supports(case: Case) -> Support:
    """Every legal shape up to ``MAX_EXPERTS`` experts."""
    experts = int(case.params["num_experts"])
    if experts > MAX_EXPERTS:
        return Support(False, f"{experts} experts; a warp holds at most {MAX_EXPERTS}")
    return Support(True)


def run(*args: Any, out: "tuple[torch.Tensor, torch.Tensor]") -> None:
    """Fill (topk_idx, topk_weights), and what of the arguments is written."""
    (
        logits, _, _, _, scale, ep_rank, _, mask, bias, image_bias, image, fixed, physical, count,
        unmapped, random, scores,
    ) = args  # fmt: skip
    built = gate_of(args)
    kernel(built, plan(built, logits.shape[0]))(
        logits, bias, image_bias, image, mask, fixed, physical, count, out[0], unmapped, out[1],
        scores, random, scale, ep_rank, 1, 0, 1,
    )  # fmt: skip


def gate_of(args: tuple[Any, ...]) -> Gate:
    """What a call needs of a program."""
    mask, bias, _, image, fixed, physical, _, unmapped, random, scores = args[7:]
    given = {
        "mask": mask,
        "bias": bias,
        "image": image,
        "unmapped": unmapped,
        "fixed": fixed,
        "physical": physical,
        "random": random,
        "scores": scores,
    }
    return Gate(
        num_experts=args[0].shape[1],
        num_topk=args[1],
        shared=args[3],
        scoring=args[6],
        options=frozenset(name for name, t in given.items() if t is not None),
        copies=1 if physical is None else physical.shape[1],
    )
