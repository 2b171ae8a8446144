"""Cost of one AdamW update."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(num_params, grad="fp32", moments="fp32", master="fp32", weights="bf16"):
    """Vector FLOPs and bytes for the parameters one rank updates."""
    names = dict(num_params=num_params, wg=width(grad), wm=width(moments))
    names |= dict(wa=width(master), ww=width(weights))
    return (
        Cost(names)
        .flop("vector", "fp32", "update", "14*num_params")
        .read("gradient, both moments, master", "num_params*(wg+2*wm+wa)")
        .write("both moments, master, weights", "num_params*(2*wm+wa+ww)")
    )
