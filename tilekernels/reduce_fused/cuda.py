"""reduce_fused on NVIDIA GPUs, in TileLang: a thread owns some columns of a token, in order.

The loads of up to ``GROUP`` places are issued before the first multiply-add, so that a token costs
one latency and not k. A long row is shared by several blocks.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import WARP, compile_cuda, grain

if TYPE_CHECKING:
    import torch

THREADS = 128
GROUP = 8


@dataclass(frozen=True)
class Form:
    """What a call has: a kernel each. ``width`` is elements in one load."""

    hidden: int
    num_topk: int
    dtype: str
    width: int
    x_sf: bool
    weights: bool
    fp8: bool
    sf: bool


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(
    x: "torch.Tensor",
    x_sf: "torch.Tensor | None",
    topk_weights: "torch.Tensor | None",
    token_topk_to_pos: "torch.Tensor",
    fp8_format: str = "",
    sf: "torch.Tensor | None" = None,
    *,
    out: "torch.Tensor",
) -> None:
    """Fill ``out`` (num_tokens, hidden)."""
    size, hidden = x.element_size(), x.shape[1]
    width = grain(hidden * size, x) // size
    width = min(width, grain(hidden * out.element_size(), out) // out.element_size())
    kind = str(x.dtype).removeprefix("torch.")
    topk = token_topk_to_pos.shape[1]
    form = Form(
        hidden, topk, kind, max(width, 1), x_sf is not None, topk_weights is not None,
        bool(fp8_format), sf is not None,
    )  # fmt: skip
    given = [t for t in (x_sf, topk_weights, sf) if t is not None]
    kernel(form)(x, token_topk_to_pos, out, *given)


@lru_cache(maxsize=256)
def kernel(form: Form, arch: str = "") -> Any:
    """The compiled kernel of a form; ``arch`` compiles where no GPU is."""
    return compile_cuda(prim_func(form), arch)


def prim_func(form: Form) -> Any:
    """The TileLang program: x (X, H), places (N, K), out (N, H), then x_sf (X,), weights (N, K) and
    sf (1,) as far as the form has them."""
    from tilelang import language as T

    H, K, V, dtype = form.hidden, form.num_topk, form.width, form.dtype
    out_dtype = "float8_e4m3fn" if form.fp8 else dtype
    threads = min(THREADS, -(-H // (V * WARP)) * WARP)
    parts = -(-H // (V * threads))
    X, N = T.dynamic("num_expanded_tokens, num_tokens")
    groups = tuple(tuple(range(g, min(g + GROUP, K))) for g in range(0, K, GROUP))

    @T.macro
    def add(x, places, out, others, t, part):
        at = (part * threads + T.get_thread_binding()) * V
        held = T.alloc_local((min(GROUP, K), V), dtype)
        total = T.alloc_local((V,), "float32")
        rounded = T.alloc_local((V,), out_dtype)
        scale = T.alloc_local((min(GROUP, K),), "float32")
        to = T.alloc_local((min(GROUP, K),), "int32")
        if at < H:
            for v in T.unroll(V):
                total[v] = T.float32(0)
            for group in groups:
                for j in group:
                    to[j - group[0]] = places[t, j]
                for j in group:
                    if to[j - group[0]] >= 0 and to[j - group[0]] < X:
                        for v in T.vectorized(V):
                            held[j - group[0], v] = x[to[j - group[0]], at + v]
                for j in group:
                    scale[j - group[0]] = T.float32(1)
                    if form.weights:
                        scale[j - group[0]] = others["weights"][t, j]
                    if form.x_sf:
                        if to[j - group[0]] >= 0 and to[j - group[0]] < X:
                            scale[j - group[0]] = T.ieee_mul(
                                scale[j - group[0]], others["x_sf"][to[j - group[0]]]
                            )
                for j in group:
                    if to[j - group[0]] >= 0 and to[j - group[0]] < X:
                        for v in T.unroll(V):
                            total[v] = T.ieee_fmaf(
                                T.cast(held[j - group[0], v], "float32"),
                                scale[j - group[0]],
                                total[v],
                            )
            for v in T.unroll(V):
                if form.sf:
                    total[v] = T.ieee_mul(total[v], others["sf"][0])
                rounded[v] = T.cast(total[v], out_dtype)
            for v in T.vectorized(V):
                out[t, at + v] = rounded[v]

    x_t, places_t = T.Tensor((X, H), dtype), T.Tensor((N, K), "int32")
    out_t = T.Tensor((N, H), out_dtype)
    kinds = {
        "x_sf": T.Tensor((X,), "float32"),
        "weights": T.Tensor((N, K), "float32"),
        "sf": T.Tensor((1,), "float32"),
    }
    names = [n for n in kinds if getattr(form, n)]
    first_t, second_t, third_t = (*(kinds[n] for n in names), None, None, None)[:3]

    if not names:

        @T.prim_func
        def reduce_0(x: x_t, places: places_t, out: out_t):
            with T.Kernel(N, parts, threads=threads) as (t, part):
                add(x, places, out, {}, t, part)

        return reduce_0
    if len(names) == 1:

        @T.prim_func
        def reduce_1(x: x_t, places: places_t, out: out_t, a: first_t):
            with T.Kernel(N, parts, threads=threads) as (t, part):
                add(x, places, out, dict(zip(names, (a,))), t, part)

        return reduce_1
    if len(names) == 2:

        @T.prim_func
        def reduce_2(x: x_t, places: places_t, out: out_t, a: first_t, b: second_t):
            with T.Kernel(N, parts, threads=threads) as (t, part):
                add(x, places, out, dict(zip(names, (a, b))), t, part)

        return reduce_2

    @T.prim_func
    def reduce_3(x: x_t, places: places_t, out: out_t, a: first_t, b: second_t, c: third_t):
        with T.Kernel(N, parts, threads=threads) as (t, part):
            add(x, places, out, dict(zip(names, (a, b, c))), t, part)

    return reduce_3
