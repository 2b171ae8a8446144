"""Matrix products: through L1 and L0, every element type, tails, split-K, persistent grid."""

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


def gemm_l0(m, n, k, dtype, trans_a=False, trans_b=True, block=64, accum="float32"):
    """One tile a block, explicit L0 loads; every combination of transposed operands."""
    a_shape = (k, m) if trans_a else (m, k)
    b_shape = (n, k) if trans_b else (k, n)
    a_tile = (k, block) if trans_a else (block, k)
    b_tile = (block, k) if trans_b else (k, block)

    @T.prim_func
    def main(a: T.Tensor(a_shape, dtype), b: T.Tensor(b_shape, dtype), c: T.Tensor((m, n), accum)):
        with T.Kernel((m // block) * (n // block)) as bid:
            bm = bid // (n // block)
            bn = bid % (n // block)
            a_l1 = T.alloc_l1(a_tile, dtype)
            b_l1 = T.alloc_l1(b_tile, dtype)
            a_l0 = T.alloc_l0a(a_tile, dtype)
            b_l0 = T.alloc_l0b(b_tile, dtype)
            acc = T.alloc_l0c((block, block), accum)
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


def gemm_split_k(m, n, k, splits, dtype="bfloat16", block=128):
    """Every block adds its share of K into C with the store's atomic add."""
    share = k // splits

    @T.prim_func
    def main(
        a: T.Tensor((m, k), dtype), b: T.Tensor((n, k), dtype), c: T.Tensor((m, n), "float32")
    ):
        with T.Kernel((m // block) * (n // block) * splits) as bid:
            part = bid % splits
            bm = bid // splits // (n // block)
            bn = bid // splits % (n // block)
            a_l1 = T.alloc_l1((block, share), dtype)
            b_l1 = T.alloc_l1((block, share), dtype)
            acc = T.alloc_l0c((block, block), "float32")
            T.copy(a[bm * block, part * share], a_l1)
            T.copy(b[bn * block, part * share], b_l1)
            T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
            T.set_atomic("add", "float32")
            T.copy(acc, c[bm * block, bn * block])
            T.set_atomic_none()

    return main


def gemm_persistent(m, n, k, cores, dtype="bfloat16", block=128):
    """As many blocks as cores, each walking its share of the tiles."""
    tiles_n = n // block
    tiles = (m // block) * tiles_n

    @T.prim_func
    def main(a: T.Tensor((m, k), dtype), b: T.Tensor((n, k), dtype), c: T.Tensor((m, n), dtype)):
        with T.Kernel(cores) as core:
            a_l1 = T.alloc_l1((block, k), dtype)
            b_l1 = T.alloc_l1((block, k), dtype)
            acc = T.alloc_l0c((block, block), "float32")
            for w in T.serial(T.ceildiv(tiles, cores)):
                tile = w * cores + core
                if tile < tiles:
                    T.copy(a[tile // tiles_n * block, 0], a_l1)
                    T.copy(b[tile % tiles_n * block, 0], b_l1)
                    T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
                    T.copy(acc, c[tile // tiles_n * block, tile % tiles_n * block])

    return main


def gemm_hf32(m, n, k, mode, block=64):
    """float32 product in HF32 arithmetic (``nearest_zero``, ``nearest_even``) or exact (None)."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), "float32"),
        b: T.Tensor((n, k), "float32"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel((m // block) * (n // block)) as bid:
            a_l1 = T.alloc_l1((block, k), "float32")
            b_l1 = T.alloc_l1((block, k), "float32")
            acc = T.alloc_l0c((block, block), "float32")
            T.set_hf32_mode(mode)
            T.copy(a[bid // (n // block) * block, 0], a_l1)
            T.copy(b[bid % (n // block) * block, 0], b_l1)
            T.gemm(a_l1, b_l1, acc, transpose_B=True, clear_accum=True)
            T.copy(acc, c[bid // (n // block) * block, bid % (n // block) * block])

    return main


def gemm_mx(m, n, k, dtype, block=64):
    """Block-scaled product: one E8M0 scale a row and 32 K-elements, passed as bytes."""

    @T.prim_func
    def main(
        a: T.Tensor((m, k), dtype),
        b: T.Tensor((n, k), dtype),
        sfa: T.Tensor((m, k // 32), "uint8"),
        sfb: T.Tensor((n, k // 32), "uint8"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel((m // block) * (n // block)) as bid:
            bm = bid // (n // block)
            bn = bid % (n // block)
            a_l1 = T.alloc_l1((block, k), dtype)
            b_l1 = T.alloc_l1((block, k), dtype)
            sfa_l1 = T.alloc_l1((block, k // 32), "uint8")
            sfb_l1 = T.alloc_l1((block, k // 32), "uint8")
            acc = T.alloc_l0c((block, block), "float32")
            T.copy(a[bm * block, 0], a_l1)
            T.copy(b[bn * block, 0], b_l1)
            T.copy(sfa[bm * block, 0], sfa_l1)
            T.copy(sfb[bn * block, 0], sfb_l1)
            T.gemm_blockscaled(a_l1, b_l1, acc, sfa_l1, sfb_l1, transpose_B=True, clear_accum=True)
            T.copy(acc, c[bm * block, bn * block])

    return main
