"""SIMT kernels: threads that meet at barriers, warp collectives, atomics."""

from tilelang.ascend import language as T


def reverse(n, threads=128):
    """y = x backwards: written by one thread, read by another."""

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((n,), "float32")
            b = T.alloc_shared((n,), "float32")
            c = T.alloc_shared((n,), "float32")
            T.copy(x, a)
            with T.SimtVF(threads=threads):
                lane = T.get_thread_binding(0)
                b[lane] = a[lane] * 2.0
                T.sync_threads()
                c[lane] = b[n - 1 - lane]
            T.copy(c, y)

    return main


def tree_sum(n):
    """The sum of n numbers, halving the threads that add."""

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((n,), "float32")
            out = T.alloc_shared((8,), "float32")
            T.copy(x, a)
            with T.SimtVF(threads=n):
                lane = T.get_thread_binding(0)
                for s in T.unroll(n.bit_length() - 1):
                    if lane < (n >> (s + 1)):
                        a[lane] = a[lane] + a[lane + (n >> (s + 1))]
                    T.sync_threads()
                if lane < 8:
                    out[lane] = a[0]
            T.copy(out, y)

    return main


def scan(n):
    """Inclusive prefix sum, two buffers taking turns."""
    steps = n.bit_length() - 1

    @T.prim_func
    def main(x: T.Tensor((n,), "int32"), y: T.Tensor((n,), "int32")):
        with T.Kernel(1):
            a = T.alloc_shared((2 * n,), "int32")
            T.copy(x, a[0:n])
            with T.SimtVF(threads=n):
                lane = T.get_thread_binding(0)
                for s in T.unroll(steps):
                    if lane >= (1 << s):
                        a[(s + 1) % 2 * n + lane] = (
                            a[s % 2 * n + lane] + a[s % 2 * n + lane - (1 << s)]
                        )
                    else:
                        a[(s + 1) % 2 * n + lane] = a[s % 2 * n + lane]
                    T.sync_threads()
            T.copy(a[steps % 2 * n : steps % 2 * n + n], y)

    return main


def transpose(size):
    """y = x^T of one tile, a thread an element, through a second buffer."""

    @T.prim_func
    def main(x: T.Tensor((size, size), "float32"), y: T.Tensor((size, size), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((size, size), "float32")
            b = T.alloc_shared((size, size), "float32")
            T.copy(x, a)
            with T.SimtVF(threads=size * size):
                lane = T.get_thread_binding(0)
                b[lane % size, lane // size] = a[lane // size, lane % size]
            T.copy(b, y)

    return main


def bitonic_sort(n):
    """Ascending order of n integers by compare and exchange."""
    stages = [(k, j) for k in range(1, n.bit_length()) for j in range(k - 1, -1, -1)]

    @T.prim_func
    def main(x: T.Tensor((n,), "int32"), y: T.Tensor((n,), "int32")):
        with T.Kernel(1):
            a = T.alloc_shared((n,), "int32")
            T.copy(x, a)
            with T.SimtVF(threads=n // 2):
                lane = T.get_thread_binding(0)
                for k, j in tuple(stages):
                    low = T.alloc_var("int32")
                    first = T.alloc_var("int32")
                    second = T.alloc_var("int32")
                    low = lane // (1 << j) * (2 << j) + lane % (1 << j)
                    first = a[low]
                    second = a[low + (1 << j)]
                    if (first > second) == (low // (1 << k) % 2 == 0):
                        a[low] = second
                        a[low + (1 << j)] = first
                    T.sync_threads()
            T.copy(a, y)

    return main


def stencil(n, rounds=2):
    """Mean of three neighbours, ``rounds`` times, on a ring."""

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((n,), "float32")
            b = T.alloc_shared((n,), "float32")
            T.copy(x, a)
            with T.SimtVF(threads=n):
                lane = T.get_thread_binding(0)
                for _ in T.serial(rounds):
                    b[lane] = (a[(lane + n - 1) % n] + a[lane] + a[(lane + 1) % n]) * (1.0 / 3.0)
                    T.sync_threads()
                    a[lane] = b[lane]
                    T.sync_threads()
            T.copy(a, y)

    return main


def histogram(n, bins=32):
    """Counts of values 0..bins-1 by atomic additions."""

    @T.prim_func
    def main(x: T.Tensor((n,), "int32"), y: T.Tensor((bins,), "int32")):
        with T.Kernel(1):
            a = T.alloc_shared((n,), "int32")
            count = T.alloc_shared((bins,), "int32")
            T.copy(x, a)
            with T.SimtVF(threads=128):
                for i in T.Parallel(bins):
                    count[i] = 0
            with T.SimtVF(threads=128):
                for i in T.Parallel(n):
                    T.atomic_add(count[a[i]], 1)
            T.copy(count, y)

    return main


def rank_pipeline(tiles, width=64):
    """Ranks of every row, rows through two versions of a buffer."""

    @T.prim_func
    def main(x: T.Tensor((tiles, width), "float32"), y: T.Tensor((tiles, width), "int32")):
        with T.Kernel(1):
            a = T.alloc_shared((width,), "float32")
            r = T.alloc_shared((width,), "int32")
            T.annotate_buffer_versions({a: 2, r: 2})
            for t in T.Pipelined(tiles, num_stages=2):
                T.copy(x[t, :], a)
                with T.SimtVF(threads=width):
                    for i in T.Parallel(width):
                        count = T.alloc_var("int32", init=0)
                        for j in T.serial(width):
                            if a[j] < a[i]:
                                count += 1
                        r[i] = count
                T.copy(r, y[t, :])

    return main


def simd_after_simt(n):
    """SIMT writes a table, SIMD scales it, SIMT shuffles it."""

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((n,), "float32")
            b = T.alloc_shared((n,), "float32")
            T.copy(x, a)
            with T.SimtVF(threads=n):
                lane = T.get_thread_binding(0)
                b[n - 1 - lane] = a[lane]
            with T.SimdVF():
                for i in T.Parallel(n):
                    b[i] = b[i] * 3.0
            with T.SimtVF(threads=n):
                lane = T.get_thread_binding(0)
                a[lane] = b[(lane + 1) % n]
            T.copy(a, y)

    return main


def mask_of_48(n=64, active=48):
    """The first ``active`` threads write, all read: a barrier that must not be lost."""

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((n,), "float32")
            b = T.alloc_shared((n,), "float32")
            T.copy(x, a)
            with T.SimtVF(threads=n):
                lane = T.get_thread_binding(0)
                b[lane] = 0.0
                T.sync_threads()
                if lane < active:
                    b[lane] = a[lane] + 1.0
                T.sync_threads()
                a[lane] = b[(lane + 16) % n]
            T.copy(a, y)

    return main
