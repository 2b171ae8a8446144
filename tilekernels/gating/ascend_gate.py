"""Both gates on the Ascend 950: what they serve, and a launch."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES_SIMT
from ascendkit.op import Support
from tilekernels.gating import SLOTS
from tilekernels.gating.ascend_program import prim_func, rows_per_tile, ub_bytes
from tilekernels.gating.gate import Gate
from tilekernels.gating.scoring import MAX_SUMMED
from tilekernels.machine import compile_ascend, vector_cores

if TYPE_CHECKING:
    import torch

PASSES = {"TL_DISABLE_THREAD_STORAGE_SYNC": True}
"""Threads exchange values by the collectives of a warp only: no barrier in the branches they take
apart."""


def supports(num_experts: int) -> Support:
    """Whether a token with every option of both gates fits the Unified Buffer."""
    room = SLOTS - 2
    every = Gate(num_experts, room, 2, "", frozenset(("scores",)), groups=(2, 1))
    if num_experts > MAX_SUMMED:
        return Support(False, f"{num_experts} experts; sums of a softmax hold {MAX_SUMMED}")
    if not rows_per_tile(every):
        need = f"a token takes {ub_bytes(every, 1)} bytes"
        return Support(False, f"{num_experts} experts: {need} of the {UB_BYTES_SIMT} there are")
    return Support(True)


def launch(
    gate: Gate,
    given: "Mapping[str, torch.Tensor | None]",
    out: "tuple[torch.Tensor, torch.Tensor]",
    scale: float,
    ep_rank: int,
    local: tuple[int, int, int] = (1, 0, 1),
) -> None:
    """Run a gate.

    Args:
        given: arguments by name: logits, and what the gate's options are.
        out: (topk_idx, topk_weights).
        local: physical experts of a rank, and tensor-parallel rank and ranks.
    """
    import torch

    logits, unmapped, count = given["logits"], given.get("unmapped"), given.get("count")
    flags = (given.get(n) for n in ("image", "mask", "fixed"))
    image, mask, fixed = (None if t is None else t.view(torch.uint8) for t in flags)
    random, total = given.get("random"), None
    if random is not None:
        random, logical = random.view(torch.uint8), gate.num_experts + gate.shared
        if count is None:
            total = torch.full((1,), logical, dtype=torch.int32, device=random.device)
        else:
            total = count.clamp(1, gate.copies).sum(dtype=torch.int32).view(1)
    if unmapped is not None:
        # Of one column the stride says nothing, but a view as words needs 1.
        unmapped = unmapped.as_strided(unmapped.shape, (unmapped.stride(0), 1)).view(torch.int32)
    tokens, cores = len(logits), vector_cores(logits)
    rows = min(rows_per_tile(gate), -(-tokens // cores))
    found = kernel(gate, cores, logits.device.type == "cpu")
    found(
        logits, given.get("bias"), given.get("image_bias"), image, mask, fixed,
        given.get("physical"), count, out[0].view(torch.int32), unmapped, out[1],
        given.get("scores"), random, total, scale, ep_rank, *local,
        rows, -(-tokens // rows),
    )  # fmt: skip


@lru_cache(maxsize=256)
def kernel(gate: Gate, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(gate, num_cores), **PASSES)
