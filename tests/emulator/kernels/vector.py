"""Small vector kernels for the tests of launching."""

import tilelang
from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S


@tilelang.jit(out_idx=[-1], target="ascend")
def add(n, block=256, dtype="float32"):
    """c = a + b, the output allocated by the caller's framework."""

    @T.prim_func
    def main(a: T.Tensor((n,), dtype), b: T.Tensor((n,), dtype), c: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, block)) as bid:
            x = T.alloc_shared((block,), dtype)
            y = T.alloc_shared((block,), dtype)
            T.copy(a[bid * block], x)
            T.copy(b[bid * block], y)
            with T.SimdVF():
                for i in T.Parallel(block):
                    x[i] = x[i] + y[i]
            T.copy(x, c[bid * block])

    return main


@tilelang.jit(target="ascend")
def scale_rows(width, dtype="float32"):
    """y = x * factor, any number of rows, rows of ``x`` any distance apart."""
    rows, stride = T.dynamic("rows"), T.dynamic("stride")

    @T.prim_func
    def main(
        x: T.StridedTensor((rows, width), (stride, 1), dtype),
        y: T.Tensor((rows, width), dtype),
        factor: T.float32,
    ):
        with T.Kernel(rows) as row:
            buf = T.alloc_shared((width,), dtype)
            T.copy(x[row, :], buf)
            with T.SimdVF():
                for i in T.serial(width // 64):
                    S.vsts(buf[i * 64], S.vmuls(S.vld(buf[i * 64]), factor))
            T.copy(buf, y[row, :])

    return main


@tilelang.jit(target="ascend")
def not_equal(n):
    """flags = a != b, computed by SIMT threads, as bool."""

    @T.prim_func
    def main(a: T.Tensor((n,), "int32"), b: T.Tensor((n,), "int32"), flags: T.Tensor((n,), "bool")):
        with T.Kernel(1):
            x = T.alloc_shared((n,), "int32")
            y = T.alloc_shared((n,), "int32")
            f = T.alloc_shared((n,), "bool")
            T.copy(a, x)
            T.copy(b, y)
            with T.SimtVF(threads=128):
                lane = T.get_thread_binding(0)
                for j in T.serial(n // 128):
                    f[j * 128 + lane] = x[j * 128 + lane] != y[j * 128 + lane]
            T.copy(f, flags)

    return main


@tilelang.jit(target="ascend")
def pick(n, count):
    """y[i] = x[index[i]] through an unchecked scalar access of the unified buffer."""

    @T.prim_func
    def main(
        x: T.Tensor((n,), "float32"),
        index: T.Tensor((count,), "int32"),
        y: T.Tensor((count,), "float32"),
    ):
        with T.Kernel(1):
            table = T.alloc_shared((n,), "float32")
            at = T.alloc_shared((count,), "int32")
            out = T.alloc_shared((count,), "float32")
            T.copy(x, table)
            T.copy(index, at)
            with T.SimtVF(threads=32):
                for i in T.Parallel(count):
                    out[i] = table[at[i]]
            T.copy(out, y)

    return main
