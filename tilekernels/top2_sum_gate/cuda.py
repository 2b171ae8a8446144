"""top2_sum_gate on NVIDIA GPUs: the gate program of ``tilekernels/gating`` with groups."""

from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.gating.cuda_gate import kernel, plan
from tilekernels.gating.gate import Gate
from tilekernels.moe_topk_gate.cuda import supports as supports_shape

if TYPE_CHECKING:
    import torch


def supports(case: Case) -> Support:
    """As ``moe_topk_gate``."""
    return supports_shape(case)


def run(*args: Any, out: "tuple[torch.Tensor, torch.Tensor]") -> None:
    """Fill (topk_idx, topk_weights), and ``unmapped_topk_idx``."""
    logits, bias, mask, fixed, physical, count, unmapped = (*args[:2], *args[13:])
    built = gate_of(args)
    kernel(built, plan(built, logits.shape[0]))(
        logits, bias, None, None, mask, fixed, physical, count, out[0], unmapped, out[1], None,
        None, args[7], args[8], experts_per_rank(args), args[10], args[11],
    )  # fmt: skip


def experts_per_rank(args: tuple[Any, ...]) -> int:
    """Physical experts of a rank."""
    extra = 0 if args[15] is None else args[15].shape[1] - 1
    return int((args[0].shape[1] + extra) // args[9])


def gate_of(args: tuple[Any, ...]) -> Gate:
    """What a call needs of a program."""
    mask, fixed, physical, _, unmapped = args[13:]
    given = {"mask": mask, "fixed": fixed, "physical": physical, "unmapped": unmapped}
    groups = (args[4], args[3]) if args[3] != args[4] else (1, 1)
    return Gate(
        num_experts=args[0].shape[1],
        num_topk=args[2],
        shared=args[6],
        scoring=args[12],
        options=frozenset(("bias", *(name for name, t in given.items() if t is not None))),
        groups=groups,
        copies=1 if physical is None else physical.shape[1],
        parallel=True,
    )
