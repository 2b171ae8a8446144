"""Two TileLang kernels for Ascend: what the demo shows and the benchmark times."""

# mypy: ignore-errors
# TileLang reads these bodies as a language of its own.

import tilelang
from tilelang.ascend import language as T


@tilelang.jit(out_idx=[-1], target="ascend")
def add(n, block=1024, dtype="float32"):
    """c = a + b on the vector cores; float32 vectors of ``n`` elements."""

    @T.prim_func
    def add_kernel(a: T.Tensor((n,), dtype), b: T.Tensor((n,), dtype), c: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, block)) as bid:
            x = T.alloc_shared((block,), dtype)
            y = T.alloc_shared((block,), dtype)
            T.copy(a[bid * block], x)
            T.copy(b[bid * block], y)
            with T.SimdVF():
                for i in T.Parallel(block):
                    x[i] = x[i] + y[i]
            T.copy(x, c[bid * block])

    return add_kernel


@tilelang.jit(out_idx=[-1], target="ascend")
def matmul(m, n, k, block=128, dtype="bfloat16"):
    """c[m, n] = a[m, k] b[n, k]^T on the cube cores; bfloat16 in, float32 out."""

    @T.prim_func
    def matmul_kernel(
        a: T.Tensor((m, k), dtype), b: T.Tensor((n, k), dtype), c: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(T.ceildiv(m, block) * T.ceildiv(n, block)) as bid:
            row = bid // T.ceildiv(n, block) * block
            column = bid % T.ceildiv(n, block) * block
            a_l1 = T.alloc_l1((block, block), dtype)
            b_l1 = T.alloc_l1((block, block), dtype)
            acc = T.alloc_l0c((block, block), "float32")
            for ko in T.Pipelined(T.ceildiv(k, block), num_stages=2):
                T.copy(a[row, ko * block], a_l1)
                T.copy(b[column, ko * block], b_l1)
                T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=(ko == 0))
            T.copy(acc, c[row, column])

    return matmul_kernel
