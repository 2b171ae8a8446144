"""top2_sum_gate judged by the rules of both gates, and the rank's indices one by one."""

from tilekernels.gating.rules import broken


def invariants(result, *args):
    """A sentence for every rule that is broken."""
    (
        logits, bias, topk, keep, groups, _, shared, scale, ep_rank, ep, tp_rank, tp, scoring, mask,
        fixed, physical, count, unmapped,
    ) = args  # fmt: skip
    total = logits.shape[1] + (0 if physical is None else physical.shape[1] - 1)
    per = total // ep

    def local(e):
        rank, at = divmod(e, per)
        if e < 0 or rank % tp != tp_rank:
            return -1
        return rank // tp * per + at

    yield from broken(
        (*result, None), logits, topk, shared, scale, ep_rank, scoring, mask=mask, bias=bias,
        fix_routing_mask=fixed, to_physical_map=physical, logical_count=count, given=unmapped,
        groups=(groups, keep), local=local,
    )  # fmt: skip
