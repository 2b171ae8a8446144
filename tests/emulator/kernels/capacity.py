"""Kernels about on-chip memory: one loop written out and rolled, tiles that are too large."""

import tilelang
from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S


@tilelang.jit(target="ascend")
def row_maximum(n, block, static):
    """y = max of a row, a tile at a time; ``static`` writes the loop out while the IR is built."""
    trips = -(-n // block)

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            top = T.alloc_shared((64,), "float32")
            with T.SimdVF():
                S.vsts(top[0], S.vdup(-T.infinity("float32"), "float32"))
            for i in list(range(trips)) if static else T.serial(trips):
                tile = T.alloc_shared((block,), "float32")
                T.copy(x[i * block : (i + 1) * block], tile)
                with T.SimdVF():
                    for j in T.serial(block // 64):
                        S.vsts(top[0], S.vmax(S.vld(top[0]), S.vld(tile[j * 64])))
            T.copy(top, y)

    return main
