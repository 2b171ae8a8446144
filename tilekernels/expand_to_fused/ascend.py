"""expand_to_fused on the Ascend 950, in TileLang: copies only.

A core brings a token's row (or a part of a long one) into the Unified Buffer once and writes it to
every place the token has. Rows without an expert are written from zeros that were copied in before.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES
from ascendkit.op import Case, Support
from tilekernels.machine import BLOCK_BYTES, compile_ascend, grain, padded, vector_cores

if TYPE_CHECKING:
    import torch

STAGES = 2
MAX_PART_BYTES = 64 * 1024
"""Longer rows are moved in parts: two of them and the zeros fit the Unified Buffer."""


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(
    x: "torch.Tensor",
    token_topk_to_pos: "torch.Tensor",
    pos_to_expert: "torch.Tensor",
    *,
    out: "torch.Tensor",
) -> None:
    """Fill ``out`` (num_expanded_tokens, hidden)."""
    import torch

    row = x.shape[1] * x.element_size()
    width = min(grain(row, x, out), 4)
    rows, places = x, token_topk_to_pos
    if not len(x):
        # Rows of zeros are left to write: a token without places stands for the tokens.
        rows, places = x.new_zeros((1, x.shape[1])), places.new_full((1, places.shape[1]), -1)
    dtype = {1: torch.int8, 2: torch.int16, 4: torch.int32}[width]
    words = row // width
    zeros = torch.zeros((1, words), dtype=dtype, device=out.device)
    found = kernel(words, width, places.shape[1], vector_cores(out), out.device.type == "cpu")
    found(rows.view(dtype), places, pos_to_expert, zeros, out.view(dtype))


@lru_cache(maxsize=256)
def kernel(words: int, width: int, num_topk: int, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(words, width, num_topk, num_cores))


def part_words(words: int, width: int) -> int:
    """Words of a part of a row: all, or as many whole blocks as ``MAX_PART_BYTES`` hold."""
    parts = -(-words * width // MAX_PART_BYTES)
    return padded(-(-words // parts), width)


def prim_func(words: int, width: int, num_topk: int, num_cores: int) -> Any:
    """The TileLang program: rows (N, W) of int8, int16 or int32 words, places (N, K), experts (X,),
    zeros (1, W) -> (X, W)."""
    from tilelang.ascend import language as T

    W, K, dtype = words, num_topk, f"int{8 * width}"
    part = part_words(words, width)
    parts = -(-W // part)
    assert (STAGES + 1) * part * width + BLOCK_BYTES <= UB_BYTES
    N, X = T.dynamic("num_tokens, num_expanded_tokens")

    @T.prim_func
    def expand_to_fused(
        x: T.Tensor((N, W), dtype),
        places: T.Tensor((N, K), "int32"),
        experts: T.Tensor((X,), "int32"),
        zeros: T.Tensor((1, W), dtype),
        out: T.Tensor((X, W), dtype),
    ):
        with T.Kernel(num_cores) as core:
            row_ub = T.alloc_shared((part,), dtype)
            zeros_ub = T.alloc_shared((part,), dtype)
            T.annotate_buffer_versions({row_ub: STAGES, zeros_ub: 1})
            T.copy(zeros[0, : T.min(part, W)], zeros_ub[: T.min(part, W)])
            for item in T.Persistent([N * parts], num_cores, core, group_size=1, num_stages=STAGES):
                token = item // parts
                begin = item % parts * part
                length = T.min(part, W - begin)
                T.copy(x[token, begin : begin + length], row_ub[:length])
                for k in T.serial(K):
                    if places[token, k] >= 0 and places[token, k] < X:
                        T.copy(row_ub[:length], out[places[token, k], begin : begin + length])
            for i in T.serial(T.ceildiv(T.max(X - core, 0), num_cores)):
                if experts[core + i * num_cores] < 0:
                    for p in T.serial(parts):
                        rest = T.min(part, W - p * part)
                        T.copy(
                            zeros_ub[:rest],
                            out[core + i * num_cores, p * part : p * part + rest],
                        )

    return expand_to_fused
