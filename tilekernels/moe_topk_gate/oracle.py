"""moe_topk_gate judged by rules: float64 scores, and what each token's way demands."""

from tilekernels.gating.rules import broken


def invariants(result, *args):
    """A sentence for every rule that is broken."""
    (
        logits, topk, _, shared, scale, ep_rank, scoring, mask, bias, image_bias, image, fixed,
        physical, count, unmapped, random, _,
    ) = args  # fmt: skip
    yield from broken(
        result,
        logits,
        topk,
        shared,
        scale,
        ep_rank,
        scoring,
        mask=mask,
        bias=bias,
        image_bias=image_bias,
        image_token_mask=image,
        fix_routing_mask=fixed,
        to_physical_map=physical,
        logical_count=count,
        given=unmapped,
        force_random=random,
    )
