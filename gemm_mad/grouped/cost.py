"""Cost of a grouped matrix product: rows sorted by expert, one weight matrix an expert."""

from ascendkit.cost import Cost
from ascendkit.formats import product_dtype, width
from gemm_mad.gemm.cost import TILE_N


def cost(rows, n, k, experts, touched=None, a="fp8_1x128", b="fp8_128x128", d="bf16", wgrad=False):
    """FLOPs and bytes over all experts of one rank.

    Args:
        rows: rows over all local experts, padding not counted.
        n, k: columns and depth of one expert's product.
        experts: experts held by the rank.
        touched: expected number of experts with at least one row (default: all).
        a, b, d: storage formats.
        wgrad: ``d[e] += a_e^T @ b_e``: both operands have ``rows`` rows, ``d`` ``(experts, n, k)``.
    """
    touched = experts if touched is None else touched
    names = dict(rows=rows, n=n, k=k, experts=experts, touched=touched, a=a, b=b, d=d)
    names |= dict(wa=width(a), wb=width(b), wd=width(d), tiles_n=-(-n // TILE_N))
    counted = Cost(names).flop("cube", product_dtype(a, b), "multiply-add", "2*rows*n*k")
    if wgrad:
        return (
            counted.read("a", "rows*k*wa")
            .read("b", "rows*n*wb")
            .read("d", "touched*n*k*wd")
            .write("d", "touched*n*k*wd")
        )
    return (
        counted.read("a", "rows*k*wa", kept=True)
        .read("weights of touched experts", "touched*n*k*wb", state=True)
        .write("d", "rows*n*wd")
        .read("a per column tile", "rows*k*wa*tiles_n", level="l2", planned=True)
        .read("weights", "touched*n*k*wb", level="l2", planned=True)
        .write("d", "rows*n*wd", level="l2", planned=True)
    )
