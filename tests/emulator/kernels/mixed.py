"""Cube and vector cores in one kernel; SIMD and SIMT in one kernel; barriers over all cores."""

from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S


def gemm_relu_scale(m, n, k, block=64, scale=0.5):
    """C = relu(A B^T) * scale: product on the cube core, epilogue split over both vector cores."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "bfloat16"),
        b: T.Tensor((n, k), "bfloat16"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel((m // block) * (n // block)) as bid:
            bm = bid // (n // block)
            bn = bid % (n // block)
            a_l1 = T.alloc_l1((block, k), "bfloat16")
            b_l1 = T.alloc_l1((block, k), "bfloat16")
            acc = T.alloc_l0c((block, block), "float32")
            half = T.alloc_shared((block // 2, block), "float32")
            T.copy(a[bm * block, 0], a_l1)
            T.copy(b[bn * block, 0], b_l1)
            T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
            T.dual_copy(acc, half)
            with T.SimdVF():
                for i in T.serial(block // 2):
                    row = S.vmuls(S.vrelu(S.vld(half[i, 0])), scale)
                    S.vsts(half[i, 0], row)
            T.dual_copy(half, c[bm * block : (bm + 1) * block, bn * block : (bn + 1) * block])

    return main


def scale_then_rank(rows, width, threads=128):
    """SIMD: y = 2x + 1. SIMT: how many elements of the row are smaller than each one."""

    @T.prim_func
    def main(
        x: T.Tensor((rows, width), "float32"),
        y: T.Tensor((rows, width), "float32"),
        rank: T.Tensor((rows, width), "int32"),
    ):
        with T.Kernel(rows) as row:
            x_ub = T.alloc_shared((width,), "float32")
            r_ub = T.alloc_shared((width,), "int32")
            T.copy(x[row, :], x_ub)
            with T.SimdVF():
                for i in T.Parallel(width):
                    x_ub[i] = x_ub[i] * 2.0 + 1.0
            with T.SimtVF(threads=threads):
                for i in T.Parallel(width):
                    count = T.alloc_var("int32", init=0)
                    for j in T.serial(width):
                        if x_ub[j] < x_ub[i]:
                            count += 1
                    r_ub[i] = count
            T.copy(x_ub, y[row, :])
            T.copy(r_ub, rank[row, :])

    return main


def neighbour_sum(cores, width=64):
    """Each core writes its row, all meet at a barrier, each reads its neighbour's row."""

    @T.prim_func
    def main(
        x: T.Tensor((cores, width), "float32"),
        mid: T.Tensor((cores, width), "float32"),
        y: T.Tensor((cores, width), "float32"),
    ):
        with T.Kernel(cores) as core:
            buf = T.alloc_shared((width,), "float32")
            other = T.alloc_shared((width,), "float32")
            T.copy(x[core, :], buf)
            with T.SimdVF():
                for i in T.Parallel(width):
                    buf[i] = buf[i] + 1.0
            T.copy(buf, mid[core, :])
            T.ascend_sync_inter_arrive("PIPE_MTE3", 0)
            T.ascend_sync_inter_wait("PIPE_MTE2", 0)
            T.copy(mid[(core + 1) % cores, :], other)
            with T.SimdVF():
                for i in T.Parallel(width):
                    other[i] = other[i] + buf[i]
            T.copy(other, y[core, :])

    return main
