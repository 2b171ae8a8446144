"""Cost of expert-parallel combine: expert outputs back to their tokens, weighted and summed."""

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
    dtype="bf16",
    num_groups=1,
    topk_groups=1,
    skew=1.0,
):
    """Link and memory bytes of one rank; partial sums are formed before they leave a rank.

    Arguments as for dispatch; ``dtype`` is the format on the wire.
    """
    copies = traffic(num_experts, num_topk, ep, scaleup_ranks, num_groups, topk_groups)
    names = dict(num_tokens=num_tokens, hidden=hidden, k=num_topk, w=width(dtype), ep=ep)
    names |= dict(skew=skew, up=copies["scaleup"], out=copies["scaleout"])
    return (
        Cost(names)
        .flop("vector", "fp32", "weighted sum", "2*num_tokens*k*hidden")
        .read("expert outputs", "num_tokens*k*hidden*w*skew")
        .write("tokens", "num_tokens*hidden*w")
        .link("partial sums from distinct ranks", "num_tokens*up*hidden*w*skew")
        .link("partial sums from distinct domains", "num_tokens*out*hidden*w*skew", link="scaleout")
    )
