"""Cube and vector cores together: prologues, epilogues, chains and loops between them."""

from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S


def bias_relu(m, n, k, block=64):
    """relu(A B^T + bias): the vector cores fetch the bias while the product runs."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "bfloat16"),
        b: T.Tensor((n, k), "bfloat16"),
        bias: T.Tensor((n,), "float32"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel((m // block) * (n // block)) as bid:
            bm = bid // (n // block)
            bn = bid % (n // block)
            a_l1 = T.alloc_l1((block, k), "bfloat16")
            b_l1 = T.alloc_l1((block, k), "bfloat16")
            acc = T.alloc_l0c((block, block), "float32")
            half = T.alloc_shared((block // 2, block), "float32")
            row = T.alloc_shared((block,), "float32")
            T.copy(bias[bn * block], row)
            T.copy(a[bm * block, 0], a_l1)
            T.copy(b[bn * block, 0], b_l1)
            T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
            T.dual_copy(acc, half)
            with T.SimdVF():
                for i in T.serial(block // 2):
                    S.vsts(half[i, 0], S.vrelu(S.vadd(S.vld(half[i, 0]), S.vld(row[0]))))
            T.dual_copy(half, c[bm * block : (bm + 1) * block, bn * block : (bn + 1) * block])

    return main


def scaled_operand(m, n, k=64, block=64):
    """(2 A) B^T: vector cores scale A on its way to L1, FixPipe writes the product."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "float32"),
        b: T.Tensor((n, k), "bfloat16"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(m // block) as bm:
            a_ub = T.alloc_shared((block // 2, k), "float32")
            s_ub = T.alloc_shared((block // 2, k), "bfloat16")
            a_l1 = T.alloc_l1((block, k), "bfloat16")
            b_l1 = T.alloc_l1((n, k), "bfloat16")
            acc = T.alloc_l0c((block, n), "float32")
            T.copy(b, b_l1)
            T.dual_copy(a[bm * block : (bm + 1) * block, :], a_ub)
            with T.SimdVF():
                for i in T.serial(block // 2):
                    two = S.vmuls(S.vld(a_ub[i, 0]), 2.0)
                    S.vsts(s_ub[i, 0], S.vcvt(two, "bfloat16"), dist="PK_B32")
            T.dual_copy(s_ub, a_l1)
            T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
            T.copy(acc, c[bm * block, 0])

    return main


def two_layers(m, k=64, hidden=64, n=64):
    """relu(A B^T) C^T: the hidden tile goes from the cube core over the vector cores and back."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "bfloat16"),
        b: T.Tensor((hidden, k), "bfloat16"),
        c: T.Tensor((n, hidden), "bfloat16"),
        out: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(m // 64) as bm:
            a_l1 = T.alloc_l1((64, k), "bfloat16")
            b_l1 = T.alloc_l1((hidden, k), "bfloat16")
            c_l1 = T.alloc_l1((n, hidden), "bfloat16")
            h_l1 = T.alloc_l1((64, hidden), "bfloat16")
            h_acc = T.alloc_l0c((64, hidden), "float32")
            acc = T.alloc_l0c((64, n), "float32")
            h_ub = T.alloc_shared((32, hidden), "float32")
            r_ub = T.alloc_shared((32, hidden), "bfloat16")
            T.copy(a[bm * 64, 0], a_l1)
            T.copy(b, b_l1)
            T.copy(c, c_l1)
            T.gemm(a_l1, b_l1, h_acc, transpose_B=True, clear_accum=True)
            T.dual_copy(h_acc, h_ub)
            with T.SimdVF():
                for i in T.serial(32):
                    S.vsts(
                        r_ub[i, 0],
                        S.vcvt(S.vrelu(S.vld(h_ub[i, 0])), "bfloat16"),
                        dist="PK_B32",
                    )
            T.dual_copy(r_ub, h_l1)
            T.gemm(h_l1, c_l1, acc, transpose_B=True, clear_accum=True)
            T.copy(acc, out[bm * 64, 0])

    return main


def sum_of_tiles(tiles, block=64):
    """sum_t |A_t B_t^T|: a product a turn on the cube core, the sum on the vector cores."""

    @T.prim_func
    def main(
        a: T.Tensor((tiles * block, block), "bfloat16"),
        b: T.Tensor((tiles * block, block), "bfloat16"),
        c: T.Tensor((block, block), "float32"),
    ):
        with T.Kernel(1):
            a_l1 = T.alloc_l1((block, block), "bfloat16")
            b_l1 = T.alloc_l1((block, block), "bfloat16")
            acc = T.alloc_l0c((block, block), "float32")
            half = T.alloc_shared((block // 2, block), "float32")
            total = T.alloc_shared((block // 2, block), "float32")
            with T.SimdVF():
                for i in T.serial(block // 2):
                    S.vsts(total[i, 0], S.vdup(0.0, "float32"))
            for t in T.serial(tiles):
                T.copy(a[t * block, 0], a_l1)
                T.copy(b[t * block, 0], b_l1)
                T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
                T.dual_copy(acc, half)
                with T.SimdVF():
                    for i in T.serial(block // 2):
                        S.vsts(total[i, 0], S.vadd(S.vld(total[i, 0]), S.vabs(S.vld(half[i, 0]))))
            T.dual_copy(total, c)

    return main


def row_peaks(m, n=64, k=64):
    """The largest element of every row of A B^T, 64 times, so that rows are whole blocks."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "bfloat16"),
        b: T.Tensor((n, k), "bfloat16"),
        top: T.Tensor((m, 64), "float32"),
    ):
        with T.Kernel(m // 64) as bm:
            a_l1 = T.alloc_l1((64, k), "bfloat16")
            b_l1 = T.alloc_l1((n, k), "bfloat16")
            acc = T.alloc_l0c((64, n), "float32")
            half = T.alloc_shared((32, n), "float32")
            peaks = T.alloc_shared((32, 64), "float32")
            T.copy(a[bm * 64, 0], a_l1)
            T.copy(b, b_l1)
            T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
            T.dual_copy(acc, half)
            with T.SimdVF():
                for i in T.serial(32):
                    S.vsts(peaks[i, 0], S.vdupv(S.vcmax(S.vld(half[i, 0]))))
            T.dual_copy(peaks, top[bm * 64 : (bm + 1) * 64, :])

    return main


def gated(m, n=64, k=64):
    """(A G^T) * relu(A U^T): two products, one vector function over both."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "bfloat16"),
        g: T.Tensor((n, k), "bfloat16"),
        u: T.Tensor((n, k), "bfloat16"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(m // 64) as bm:
            a_l1 = T.alloc_l1((64, k), "bfloat16")
            g_l1 = T.alloc_l1((n, k), "bfloat16")
            u_l1 = T.alloc_l1((n, k), "bfloat16")
            g_acc = T.alloc_l0c((64, n), "float32")
            u_acc = T.alloc_l0c((64, n), "float32")
            g_ub = T.alloc_shared((32, n), "float32")
            u_ub = T.alloc_shared((32, n), "float32")
            T.copy(a[bm * 64, 0], a_l1)
            T.copy(g, g_l1)
            T.copy(u, u_l1)
            T.gemm(a_l1, g_l1, g_acc, transpose_B=True, clear_accum=True)
            T.dual_copy(g_acc, g_ub)
            T.gemm(a_l1, u_l1, u_acc, transpose_B=True, clear_accum=True)
            T.dual_copy(u_acc, u_ub)
            with T.SimdVF():
                for i in T.serial(32):
                    S.vsts(g_ub[i, 0], S.vmul(S.vld(g_ub[i, 0]), S.vrelu(S.vld(u_ub[i, 0]))))
            T.dual_copy(g_ub, c[bm * 64 : (bm + 1) * 64, :])

    return main


def narrow_output(m, n=64, k=64):
    """A B^T as bfloat16, converted and packed by the vector cores."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "bfloat16"),
        b: T.Tensor((n, k), "bfloat16"),
        c: T.Tensor((m, n), "bfloat16"),
    ):
        with T.Kernel(m // 64) as bm:
            a_l1 = T.alloc_l1((64, k), "bfloat16")
            b_l1 = T.alloc_l1((n, k), "bfloat16")
            acc = T.alloc_l0c((64, n), "float32")
            half = T.alloc_shared((32, n), "float32")
            low = T.alloc_shared((32, n), "bfloat16")
            T.copy(a[bm * 64, 0], a_l1)
            T.copy(b, b_l1)
            T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
            T.dual_copy(acc, half)
            with T.SimdVF():
                for i in T.serial(32):
                    S.vsts(low[i, 0], S.vcvt(S.vld(half[i, 0]), "bfloat16"), dist="PK_B32")
            T.dual_copy(low, c[bm * 64 : (bm + 1) * 64, :])

    return main


def deep_k(m, n, k, block_k=64):
    """relu(A B^T) with K in pipelined steps on the cube core."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "bfloat16"),
        b: T.Tensor((n, k), "bfloat16"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel((m // 64) * (n // 64)) as bid:
            bm = bid // (n // 64)
            bn = bid % (n // 64)
            a_l1 = T.alloc_l1((64, block_k), "bfloat16")
            b_l1 = T.alloc_l1((64, block_k), "bfloat16")
            acc = T.alloc_l0c((64, 64), "float32")
            half = T.alloc_shared((32, 64), "float32")
            for ko in T.Pipelined(k // block_k, num_stages=2):
                T.copy(a[bm * 64, ko * block_k], a_l1)
                T.copy(b[bn * 64, ko * block_k], b_l1)
                T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=(ko == 0))
            T.dual_copy(acc, half)
            with T.SimdVF():
                for i in T.serial(32):
                    S.vsts(half[i, 0], S.vrelu(S.vld(half[i, 0])))
            T.dual_copy(half, c[bm * 64 : (bm + 1) * 64, bn * 64 : (bn + 1) * 64])

    return main


def tiles_in_turn(tiles, n=64, k=64):
    """One block walks over tiles of rows: product, then scale, tile after tile."""

    @T.prim_func
    def main(
        a: T.Tensor((tiles * 64, k), "bfloat16"),
        b: T.Tensor((n, k), "bfloat16"),
        c: T.Tensor((tiles * 64, n), "float32"),
    ):
        with T.Kernel(1):
            a_l1 = T.alloc_l1((64, k), "bfloat16")
            b_l1 = T.alloc_l1((n, k), "bfloat16")
            acc = T.alloc_l0c((64, n), "float32")
            half = T.alloc_shared((32, n), "float32")
            T.copy(b, b_l1)
            for t in T.serial(tiles):
                T.copy(a[t * 64, 0], a_l1)
                T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
                T.dual_copy(acc, half)
                with T.SimdVF():
                    for i in T.serial(32):
                        S.vsts(half[i, 0], S.vmuls(S.vld(half[i, 0]), 0.25))
                T.dual_copy(half, c[t * 64 : (t + 1) * 64, :])

    return main
