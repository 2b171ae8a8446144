"""A kernel whose values are right by luck: blocks meet in one tensor without an order."""

from tilelang.ascend import language as T


def scaled(n, factor, blocks):
    """y = factor x, the whole of it by each of ``blocks`` blocks; n a multiple of 8."""

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(blocks):
            buf = T.alloc_shared((n,), "float32")
            T.copy(x, buf)
            with T.SimdVF():
                for i in T.Parallel(n):
                    buf[i] = buf[i] * factor
            T.copy(buf, y)

    return main


def tiles(rows, blocks):
    """y = x, a row of 64 floats a block."""

    @T.prim_func
    def main(x: T.Tensor((rows, 64), "float32"), y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(blocks) as row:
            buf = T.alloc_shared((64,), "float32")
            T.copy(x[row, :], buf)
            T.copy(buf, y[row, :])

    return main
