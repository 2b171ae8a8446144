"""Inputs of the gates: logits and the tensors an option needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendkit.testing import generator, normal, scores

if TYPE_CHECKING:
    import torch


def options(p: dict[str, Any], seed: int) -> dict[str, Any]:
    """Tensors by argument name for ``p["options"]``; None where one is not asked for."""
    import torch

    tokens, experts, topk = p["num_tokens"], p["num_experts"], p["num_topk"]
    shared, asked = p.get("shared", 0), p.get("options", ())
    g = generator(seed + 1)

    def some(share: float) -> torch.Tensor:
        return torch.rand(tokens, generator=g) < share

    found: dict[str, Any] = dict.fromkeys(
        ("mask", "bias", "image_bias", "image_token_mask", "fix_routing_mask", "to_physical_map",
         "logical_count", "unmapped_topk_idx", "force_random", "scores")
    )  # fmt: skip
    if "mask" in asked:
        found["mask"] = some(0.8)
    if "bias" in asked:
        found["bias"] = normal((experts,), g) * 0.1
    if "image" in asked:
        found["image_bias"], found["image_token_mask"] = normal((experts,), g), some(0.4)
    if "unmapped" in asked or "fixed" in asked:
        # Rows further apart than they are long: a view of a larger buffer.
        wide = torch.randint(-1, experts, (tokens, topk + 3), generator=g)
        found["unmapped_topk_idx"] = wide[:, :topk]
    if "fixed" in asked:
        found["fix_routing_mask"] = some(0.5)
    if "physical" in asked:
        copies = p.get("copies", 3)
        logical = experts + shared
        found["logical_count"] = torch.randint(1, copies + 1, (logical,), generator=g).int()
        order = torch.randperm(logical * copies, generator=g).int()
        found["to_physical_map"] = order.view(logical, copies)
    if "random" in asked:
        found["force_random"] = some(0.3)
    if "scores" in asked:
        found["scores"] = torch.full((tokens, experts), -5.0)
    return found


def logits(p: dict[str, Any], seed: int) -> torch.Tensor:
    """float32 (num_tokens, num_experts) of the kind ``p["logits"]``."""
    kind = p.get("logits", "random")
    if kind in ("wide", "far"):
        scale = 8.0 if kind == "wide" else 90.0
        return normal((p["num_tokens"], p["num_experts"]), generator(seed)) * scale
    return scores(kind, (p["num_tokens"], p["num_experts"]), seed)
