"""The TileLang program of topk on NVIDIA GPUs: launch, shared memory, arguments."""

from typing import Any


def program(
    element_bytes: int, threads: int, cluster: int, residents: int, shared: int, code: str
) -> Any:
    """One TileLang program around the CUDA function ``ak_select`` of ``code``.

    Args:
        element_bytes: of the input.
        threads: of a CTA.
        cluster: CTAs of a cluster, along the grid.
        residents: CTAs an SM must be able to hold (bounds the registers).
        shared: bytes of shared memory of a CTA.
        code: CUDA text (cuda_source.py).
    """
    from tilelang import language as T

    word = "int32" if element_bytes == 4 else "int16"
    nx, nb, ne, nd, nf, np_, nv, ni = (
        T.dynamic(s, "int64") for s in ("nx", "nb", "ne", "nd", "nf", "np", "nv", "ni")
    )

    @T.prim_func
    def select(
        src: T.Tensor((nx,), word),
        begin: T.Tensor((nb,), "int32"),
        end: T.Tensor((ne,), "int32"),
        draws: T.Tensor((nd,), "int32"),
        offset: T.Tensor((nf,), "int32"),
        pages: T.Tensor((np_,), "int32"),
        values: T.Tensor((nv,), word),
        indices: T.Tensor((ni,), "int32"),
        ctas: T.int32,
        rows: T.int32,
        row_len: T.int32,
        misaligned: T.int32,
        topk: T.int32,
        order: T.int32,
        flags: T.int32,
        page_size: T.int32,
        value_fill: T.int32,
        stride: T.int64,
        values_stride: T.int64,
        indices_stride: T.int64,
        pages_stride: T.int64,
        index_fill: T.int64,
    ):
        with T.Kernel(ctas, threads=threads, cluster_dims=cluster):
            T.import_source(code)
            T.annotate_min_blocks_per_sm(residents)
            # A launch may begin while the one in front of it ends; clusters are launched so anyway.
            T.pdl_sync()
            room = T.alloc_shared((shared,), "uint8")
            T.call_extern(
                "void", "ak_select", T.address_of(room[0]), T.address_of(src[0]),
                T.address_of(begin[0]), T.address_of(end[0]), T.address_of(draws[0]),
                T.address_of(offset[0]), T.address_of(pages[0]), T.address_of(values[0]),
                T.address_of(indices[0]), rows, row_len, misaligned, topk, order, flags, page_size,
                value_fill, stride, values_stride, indices_stride, pages_stride, index_fill,
            )  # fmt: skip

    return select
