"""Copies, tails, pads and reductions that went wrong for users, as small kernels."""

from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S


def column(m, width=64):
    """y[i, :] = x[i, 0]: a column of 4-byte rows comes from global memory and is spread."""

    @T.prim_func
    def main(x: T.Tensor((m, 1), "float32"), y: T.Tensor((m, width), "float32")):
        with T.Kernel(1):
            one = T.alloc_shared((m, 1), "float32")
            all = T.alloc_shared((m, width), "float32")
            T.copy(x, one)
            with T.SimtVF(threads=64):
                for i, j in T.Parallel(m, width):
                    all[i, j] = one[i, 0]
            T.copy(all, y)

    return main


def padded_tile(rows, columns, block, pad, filled):
    """The tile (block, block) around x, with a safe value for the rest; ``filled``: by hand."""

    @T.prim_func
    def main(x: T.Tensor((rows, columns), "int32"), y: T.Tensor((block, block), "int32")):
        with T.Kernel(1):
            tile = T.alloc_shared((block, block), "int32")
            T.annotate_safe_value({x: pad})
            if filled:
                with T.SimtVF(threads=64):
                    for i, j in T.Parallel(block, block):
                        tile[i, j] = pad
                T.copy(x, tile[:rows, :columns])
            else:
                T.copy(x[0:block, 0:block], tile)
            T.copy(tile, y)

    return main


def fold_rows(rows, lanes, dtype, op):
    """y[j] = op over i of x[i, j]: one register after another, ``lanes`` columns of a register."""
    fold = {"sum": S.vadd, "max": S.vmax}[op]

    @T.prim_func
    def main(x: T.Tensor((rows, lanes), dtype), y: T.Tensor((lanes,), dtype)):
        with T.Kernel(1):
            tile = T.alloc_shared((rows, lanes), dtype)
            out = T.alloc_shared((lanes,), dtype)
            T.copy(x, tile)
            with T.SimdVF():
                total = S.alloc_local((1,), dtype)
                total[0] = S.vld(tile[0, 0])
                for i in T.serial(rows - 1):
                    total[0] = fold(total[0], S.vld(tile[i + 1, 0]))
                S.vsts(out[0], total[0])
            T.copy(out, y)

    return main


def fold_columns(rows, columns, dtype, op):
    """y[i] = op over j of x[i, j], a thread a row."""
    fold = {"sum": lambda a, b: a + b, "max": T.max}[op]

    @T.prim_func
    def main(x: T.Tensor((rows, columns), dtype), y: T.Tensor((rows,), dtype)):
        with T.Kernel(1):
            tile = T.alloc_shared((rows, columns), dtype)
            out = T.alloc_shared((rows,), dtype)
            T.copy(x, tile)
            with T.SimtVF(threads=rows):
                i = T.get_thread_binding()
                out[i] = tile[i, 0]
                for j in T.serial(columns - 1):
                    out[i] = fold(out[i], tile[i, j + 1])
            T.copy(out, y)

    return main


def threads_to_the_end(n, aligned, guarded):
    """y[i] = x[i] by ``aligned`` threads; without the guard those past n store as well."""

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((aligned,), "float32")
            T.copy(x, tile[:n])
            with T.SimtVF(threads=aligned):
                i = T.get_thread_binding()
                if not guarded or i < n:
                    y[i] = tile[i]

    return main


def sliced_product(k, width):
    """C = A B^T of int8 in slices of ``width`` columns through L0."""

    @T.prim_func
    def main(
        a: T.Tensor((64, k), "int8"), b: T.Tensor((64, k), "int8"), c: T.Tensor((64, 64), "int32")
    ):
        with T.Kernel(1):
            a_l1 = T.alloc_l1((64, k), "int8")
            b_l1 = T.alloc_l1((64, k), "int8")
            a_l0 = T.alloc_l0a((64, width), "int8")
            b_l0 = T.alloc_l0b((64, width), "int8")
            acc = T.alloc_l0c((64, 64), "int32")
            T.copy(a, a_l1)
            T.copy(b, b_l1)
            for s in T.serial(k // width):
                T.copy(a_l1[0, s * width], a_l0)
                T.copy(b_l1[0, s * width], b_l0)
                T.gemm(a_l0, b_l0, acc, transpose_B=True, clear_accum=(s == 0))
            T.copy(acc, c)

    return main


def symbolic_copy(most):
    """y[:n] = x[:n] for a length known at run time."""
    n = T.dynamic("n")

    @T.prim_func
    def main(x: T.Tensor((n,), "int32"), y: T.Tensor((n,), "int32")):
        with T.Kernel(1):
            ub = T.alloc_shared((most,), "int32")
            T.copy(x[0 : T.min(n, most)], ub[0 : T.min(n, most)])
            T.copy(ub[0 : T.min(n, most)], y[0 : T.min(n, most)])

    return main
