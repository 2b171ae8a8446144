"""Vector kernels whose synchronisation TileLang derives: chains, double buffers, reductions."""

from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S


def pipelined_scale(tiles, width=128, stages=2):
    """y = 2 x + 1, tile after tile through ``stages`` versions of a buffer."""

    @T.prim_func
    def main(x: T.Tensor((tiles, width), "float32"), y: T.Tensor((tiles, width), "float32")):
        with T.Kernel(1):
            buf = T.alloc_shared((width,), "float32")
            out = T.alloc_shared((width,), "float32")
            T.annotate_buffer_versions({buf: stages, out: stages})
            for t in T.Pipelined(tiles, num_stages=stages):
                T.copy(x[t, :], buf)
                with T.SimdVF():
                    for i in T.Parallel(width):
                        out[i] = buf[i] * 2.0 + 1.0
                T.copy(out, y[t, :])

    return main


def single_buffer(tiles, width=128):
    """y = -x in one buffer in place: every tile waits for the one before it to leave."""

    @T.prim_func
    def main(x: T.Tensor((tiles, width), "float32"), y: T.Tensor((tiles, width), "float32")):
        with T.Kernel(1):
            buf = T.alloc_shared((width,), "float32")
            for t in T.serial(tiles):
                T.copy(x[t, :], buf)
                with T.SimdVF():
                    for i in T.Parallel(width):
                        buf[i] = buf[i] * -1.0
                T.copy(buf, y[t, :])

    return main


def softmax_rows(rows, width=128):
    """Softmax of every row, three passes over the unified buffer."""

    @T.prim_func
    def main(x: T.Tensor((rows, width), "float32"), y: T.Tensor((rows, width), "float32")):
        with T.Kernel(rows) as row:
            buf = T.alloc_shared((width,), "float32")
            T.copy(x[row, :], buf)
            with T.SimdVF():
                peak = S.alloc_local((1,), "float32")
                total = S.alloc_local((1,), "float32")
                peak[0] = S.vdup(-3.0e38, "float32")
                total[0] = S.vdup(0.0, "float32")
                for j in T.serial(width // 64):
                    peak[0] = S.vmax(peak[0], S.vld(buf[j * 64]))
                top = S.vdupv(S.vcmax(peak[0]))
                for j in T.serial(width // 64):
                    e = S.vexpdif(S.vld(buf[j * 64]), top)
                    total[0] = S.vadd(total[0], e)
                    S.vsts(buf[j * 64], e)
                sums = S.vdupv(S.vcadd(total[0]))
                S.mem_bar("VST_VLD")
                for j in T.serial(width // 64):
                    S.vsts(buf[j * 64], S.vdiv(S.vld(buf[j * 64]), sums))
            T.copy(buf, y[row, :])

    return main


def two_products(n, block=128):
    """p = a b and q = a + b: two inputs, two outputs, two vector functions."""

    @T.prim_func
    def main(
        a: T.Tensor((n,), "float32"),
        b: T.Tensor((n,), "float32"),
        p: T.Tensor((n,), "float32"),
        q: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(n // block) as bid:
            x = T.alloc_shared((block,), "float32")
            y = T.alloc_shared((block,), "float32")
            z = T.alloc_shared((block,), "float32")
            T.copy(a[bid * block], x)
            T.copy(b[bid * block], y)
            with T.SimdVF():
                for i in T.Parallel(block):
                    z[i] = x[i] * y[i]
            T.copy(z, p[bid * block])
            with T.SimdVF():
                for i in T.Parallel(block):
                    x[i] = x[i] + y[i]
            T.copy(x, q[bid * block])

    return main


def accumulate(tiles, width=64):
    """y = sum over tiles of x: the sum stays in the unified buffer between tiles."""

    @T.prim_func
    def main(x: T.Tensor((tiles, width), "float32"), y: T.Tensor((width,), "float32")):
        with T.Kernel(1):
            buf = T.alloc_shared((width,), "float32")
            total = T.alloc_shared((width,), "float32")
            with T.SimdVF():
                for i in T.Parallel(width):
                    total[i] = 0.0
            for t in T.Pipelined(tiles, num_stages=2):
                T.copy(x[t, :], buf)
                with T.SimdVF():
                    for i in T.Parallel(width):
                        total[i] = total[i] + buf[i]
            T.copy(total, y)

    return main


def sum_over_cores(cores, width=64):
    """Every core writes twice its row, all meet, every core adds up all rows."""

    @T.prim_func
    def main(
        x: T.Tensor((cores, width), "float32"),
        twice: T.Tensor((cores, width), "float32"),
        y: T.Tensor((cores, width), "float32"),
    ):
        with T.Kernel(cores) as core:
            a = T.alloc_shared((width,), "float32")
            rows = T.alloc_shared((cores, width), "float32")
            T.copy(x[core, :], a)
            with T.SimdVF():
                for i in T.Parallel(width):
                    a[i] = a[i] * 2.0
            T.copy(a, twice[core, :])
            T.ascend_sync_inter_arrive("PIPE_MTE3", 3)
            T.ascend_sync_inter_wait("PIPE_MTE2", 3)
            T.copy(twice, rows)
            with T.SimdVF():
                total = S.alloc_local((1,), "float32")
                total[0] = S.vdup(0.0, "float32")
                for c in T.serial(cores):
                    total[0] = S.vadd(total[0], S.vld(rows[c, 0]))
                S.vsts(a[0], total[0])
            T.copy(a, y[core, :])

    return main


def gather_rows(rows, picks, width=64):
    """y[i] = x[index[i]]: scalar code reads the index from global memory."""

    @T.prim_func
    def main(
        x: T.Tensor((rows, width), "float32"),
        index: T.Tensor((picks,), "int32"),
        y: T.Tensor((picks, width), "float32"),
    ):
        with T.Kernel(1):
            buf = T.alloc_shared((width,), "float32")
            for i in T.serial(picks):
                T.copy(x[index[i], :], buf)
                T.copy(buf, y[i, :])

    return main
