"""Cost of a matrix product ``d[m, n] = a[m, k] @ b[n, k]^T``, ``batch`` of them."""

from ascendkit.cost import Cost
from ascendkit.formats import product_dtype, width

TILE_M, TILE_N = 128, 256
"""Output tile of the planned bytes; what a 128x256 MMA tile re-reads through L2."""


def cost(m, n, k, batch=1, a="bf16", b="bf16", d="bf16", accumulate=False):
    """FLOPs and bytes of ``batch`` products.

    Args:
        m, n, k: rows, columns, depth of one product.
        a, b, d: storage formats (:mod:`ascendkit.formats`), scales counted.
        accumulate: ``d += a @ b`` reads ``d`` as well (weight gradients).
    """
    shape = dict(m=m, n=n, k=k, batch=batch, a=a, b=b, d=d)
    widths = dict(wa=width(a), wb=width(b), wd=width(d), acc=int(accumulate))
    tiles = dict(tiles_m=-(-m // TILE_M), tiles_n=-(-n // TILE_N))
    return (
        Cost({**shape, **widths, **tiles})
        .flop("cube", product_dtype(a, b), "multiply-add", "2*batch*m*n*k")
        .read("a", "batch*m*k*wa", kept=True)
        .read("b", "batch*n*k*wb", state=True)
        .read("d", "batch*m*n*wd*acc")
        .write("d", "batch*m*n*wd")
        .read("a per column tile", "batch*m*k*wa*tiles_n", level="l2", planned=True)
        .read("b per row tile", "batch*n*k*wb*tiles_m", level="l2", planned=True)
        .write("d", "batch*m*n*wd", level="l2", planned=True)
    )
