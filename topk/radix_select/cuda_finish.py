"""How a CTA orders what it selected and writes it."""

from types import SimpleNamespace
from typing import Any

from topk.radix_select.cuda_format import (
    FORMATS,
    HAS_OFFSET,
    HAS_PAGES,
    HAS_VALUES,
    NOWHERE,
    ORDER_NONE,
    ORDER_VALUE,
    keys,
)  # fmt: skip


def finishing(dtype: str, threads: int, wide: bool) -> Any:
    """Macros of the epilogue."""
    from tilelang import language as T

    f, u, NT = FORMATS[dtype], keys(dtype).u, threads
    itype = "int64" if wide else "int32"

    @T.macro
    def sort(keys, places, n, by_value, tid):
        size = T.alloc_var("int32", init=2)
        while size < n:
            size = size * 2
        for i in T.serial(T.ceildiv(size, NT)):
            c = i * NT + tid
            if c >= n and c < size:
                keys[c] = u(0)
                places[c] = NOWHERE
        run = T.alloc_var("int32", init=2)
        while run <= size:
            step = T.alloc_var("int32", init=0)
            step = run // 2
            while step > 0:
                T.sync_threads()
                for i in T.serial(T.ceildiv(size // 2, NT)):
                    c = i * NT + tid
                    if c < size // 2:
                        a = 2 * c - (c & (step - 1))
                        z = a + step
                        ka = keys[a]
                        kz = keys[z]
                        pa = places[a]
                        pz = places[z]
                        by_place = T.Or(by_value == 0, ka == kz)
                        wrong = T.if_then_else(by_place, pz < pa, kz > ka)
                        if wrong == ((a & run) == 0):
                            keys[a] = kz
                            keys[z] = ka
                            places[a] = pz
                            places[z] = pa
                step = step // 2
            run = run * 2
        T.sync_threads()

    @T.macro
    def finish(
        src, values, indices, offset, pages, keys, places, n, b, base, row, topk, order, flags,
        values_stride, indices_stride, pages_stride, page_size, index_fill, value_fill, tid,
    ):  # fmt: skip
        if order != ORDER_NONE and n > 1:
            sort(keys, places, n, T.if_then_else(order == ORDER_VALUE, 1, 0), tid)
        for i in T.serial(T.ceildiv(topk, NT)):
            c = i * NT + tid
            if c < topk:
                index = T.alloc_var("int64", init=0)
                value = T.alloc_var(f.word, init=0)
                index = index_fill
                value = T.Cast(f.word, value_fill)
                if c < n:
                    here = places[c] + b[2]
                    index = T.Cast("int64", here)
                    if (flags & HAS_VALUES) != 0:
                        value = src[base + T.Cast("int64", here)]
                    if (flags & HAS_PAGES) != 0:
                        page = pages[
                            T.Cast("int64", row) * pages_stride + T.truncdiv(here, page_size)
                        ]
                        index = T.Cast("int64", page) * page_size + T.truncmod(here, page_size)
                    if (flags & HAS_OFFSET) != 0:
                        index = index + T.Cast("int64", offset[row])
                indices[T.Cast("int64", row) * indices_stride + c] = T.Cast(itype, index)
                if (flags & HAS_VALUES) != 0:
                    values[T.Cast("int64", row) * values_stride + c] = value

    return SimpleNamespace(sort=sort, finish=finish)
