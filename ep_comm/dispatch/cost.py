"""Cost of expert-parallel dispatch: tokens to the ranks that hold their experts."""

from ascendkit.cost import Cost
from ascendkit.formats import width
from ep_comm.routing import traffic


def cost(
    num_tokens,
    hidden,
    num_experts,
    num_topk,
    ep,
    scaleup_ranks,
    dtype="fp8_1x128",
    num_groups=1,
    topk_groups=1,
    skew=1.0,
):
    """Link and memory bytes of one rank; of the rank that receives most.

    Args:
        num_tokens, hidden: rows this rank sends, and their width.
        num_experts, num_topk, ep: E, k, and the ranks that share the experts.
        scaleup_ranks: ranks of one scale-up domain.
        dtype: format on the wire, scales counted.
        num_groups, topk_groups: group-limited gate.
        skew: rows the fullest rank receives, over the mean.
    """
    copies = traffic(num_experts, num_topk, ep, scaleup_ranks, num_groups, topk_groups)
    names = dict(num_tokens=num_tokens, hidden=hidden, k=num_topk, w=width(dtype), ep=ep)
    names |= dict(skew=skew, up=copies["scaleup"], out=copies["scaleout"])
    return (
        Cost(names)
        .read("tokens", "num_tokens*hidden*w")
        .write("received rows, one per chosen expert", "num_tokens*k*hidden*w*skew")
        .link("tokens to distinct ranks", "num_tokens*up*hidden*w*skew")
        .link("tokens to distinct domains", "num_tokens*out*hidden*w*skew", link="scaleout")
    )
