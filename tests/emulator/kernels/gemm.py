"""Matrix products: operands through L1 and L0, every element type, tails, split-K, persistent grid."""

import tilelang
from tilelang.ascend import language as T


def gemm_l1(m, n, k, dtype, block_m=128, block_n=128, block_k=128, out_dtype="float32"):
    """C[m, n] = A[m, k] B[n, k]^T with the L1 template (sub-K pipeline inside)."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), dtype), b: T.Tensor((n, k), dtype), c: T.Tensor((m, n), out_dtype)
    ):
        with T.Kernel(T.ceildiv(m, block_m) * T.ceildiv(n, block_n)) as bid:
            bm = bid // T.ceildiv(n, block_n)
            bn = bid % T.ceildiv(n, block_n)
            a_l1 = T.alloc_l1((block_m, block_k), dtype)
            b_l1 = T.alloc_l1((block_n, block_k), dtype)
            acc = T.alloc_l0c((block_m, block_n), "float32")
            for ko in T.Pipelined(T.ceildiv(k, block_k), num_stages=2):
                T.copy(a[bm * block_m, ko * block_k], a_l1)
                T.copy(b[bn * block_n, ko * block_k], b_l1)
                T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=(ko == 0))
            T.copy(acc, c[bm * block_m, bn * block_n])

    return main


def gemm_l0(m, n, k, dtype, trans_a=False, trans_b=True, block=64):
    """One tile a block, explicit L0 loads; every combination of transposed operands."""
    a_shape = (k, m) if trans_a else (m, k)
    b_shape = (n, k) if trans_b else (k, n)
    a_tile = (k, block) if trans_a else (block, k)
    b_tile = (block, k) if trans_b else (k, block)

    @T.prim_func
    def main(
        a: T.Tensor(a_shape, dtype), b: T.Tensor(b_shape, dtype), c: T.Tensor((m, n), "float32")
    ):
        with T.Kernel((m // block) * (n // block)) as bid:
            bm = bid // (n // block)
            bn = bid % (n // block)
            a_l1 = T.alloc_l1(a_tile, dtype)
            b_l1 = T.alloc_l1(b_tile, dtype)
            a_l0 = T.alloc_l0a(a_tile, dtype)
            b_l0 = T.alloc_l0b(b_tile, dtype)
            acc = T.alloc_l0c((block, block), "float32")
            if trans_a:
                T.copy(a[0, bm * block], a_l1)
            else:
                T.copy(a[bm * block, 0], a_l1)
            if trans_b:
                T.copy(b[bn * block, 0], b_l1)
            else:
                T.copy(b[0, bn * block], b_l1)
            T.copy(a_l1, a_l0)
            T.copy(b_l1, b_l0)
            T.gemm(a_l0, b_l0, acc, transpose_A=trans_a, transpose_B=trans_b, clear_accum=True)
            T.copy(acc, c[bm * block, bn * block])

    return main
