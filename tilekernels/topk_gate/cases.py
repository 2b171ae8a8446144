"""Cases of topk_gate: shapes of real models, sizes around alignments, scores that break ties."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Contract
from ascendkit.testing import FINITE_SCORES, SCORES, around, sizes

if TYPE_CHECKING:
    import torch

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "descending score; equal scores by index, the smaller first",
        "-0.0 equals 0.0; infinities are ordinary scores",
        "a NaN counts as -inf; with check_values it raises ValueError instead",
        "every index of a row occurs once",
    ),
    oracle="brute force: the best expert left, k times",
    source="tile-kernels 2.1.0 topk_gate, extended to non-finite scores",
)

MODELS = {"v3": (256, 8), "v4_pro": (384, 6), "v4_flash": (256, 6), "small": (72, 6)}
"""(num_experts, num_topk) of routed models."""
OTHERS = (
    (32, 6), (64, 6), (96, 6), (16, 6), (36, 6), (108, 6), (128, 6), (144, 6), (288, 7), (256, 9),
)  # fmt: skip
BENCH_TOKENS = (1, 128, 4096, 16384)


def cases() -> Iterator[Case]:
    """Everything a caller may pass, smallest first; then what must be refused."""
    # Lists overlap (256 is an alignment and a model): the first of a name stays.
    found: dict[str, Case] = {}
    for case in chain(_shapes(), _values(), _refused()):
        found.setdefault(case.name, case)
    yield from found.values()


def _shapes() -> Iterator[Case]:
    for experts, topk in MODELS.values():
        yield _case(17, experts, topk)
    for experts, topk in ((256, 8), (1, 1)):
        for tokens in (0, 1):
            yield _case(tokens, experts, topk)
    for experts, topk in OTHERS:
        yield _case(65, experts, topk, level="core")
    for experts in sizes(4, 32, 64, 128, 256, low=2, high=300):
        yield _case(5, experts, min(experts, 8), level="core")
    for tokens in sizes(4, 16, 64, low=2, high=130):
        yield _case(tokens, 256, 8, level="core")
    for topk in (*range(1, 10), *around(16), 31, 32):
        yield _case(6, 64, topk, "ties", level="core")
    for experts in (384, *around(512), 1024, 2048):
        yield _case(3, experts, 8, level="core")
    for topk in (1, 8, 32):
        yield _case(3, 32, topk, "ties", level="core")
    # Rows beyond a 32-bit element offset would take 8 GiB; beyond 16-bit token counts is enough.
    yield _case(70001, 16, 2, level="full")
    for name, (experts, topk) in MODELS.items():
        for tokens in BENCH_TOKENS:
            yield _case(tokens, experts, topk, level="full", bench=True, tag=name)


def _values() -> Iterator[Case]:
    for kind in SCORES:
        level = "smoke" if kind in ("ties", "all_equal", "minus_inf") else "core"
        refused = "ValueError" if "nan" in kind else ""
        yield _case(33, 256, 8, kind, level=level, error=refused)
    for kind in FINITE_SCORES:
        yield _case(9, 72, 6, kind, level="core")


def _refused() -> Iterator[Case]:
    for wrong, error in _WRONG.items():
        params = {"num_tokens": 4, "num_experts": 64, "num_topk": 8, "wrong": wrong}
        yield Case(f"refused-{wrong}", params, error=error)


_WRONG = {
    "float64": "TypeError",
    "one_dimension": "ValueError",
    "transposed": "ValueError",
    "no_experts": "ValueError",
    "topk_0": "ValueError",
    "topk_above_experts": "ValueError",
    "topk_33": "ValueError",
    "topk_float": "TypeError",
    "topk_bool": "TypeError",
    "list": "TypeError",
}


def _case(
    tokens: int,
    experts: int,
    topk: int,
    kind: str = "random",
    *,
    level: str = "smoke",
    bench: bool = False,
    error: str = "",
    tag: str = "",
) -> Case:
    params = {"num_tokens": tokens, "num_experts": experts, "num_topk": topk, "scores": kind}
    name = f"{tag + '-' if tag else ''}{tokens}x{experts}k{topk}"
    return Case(f"{name}-{kind}" if kind != "random" else name, params, level, 1, bench, error)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(scores, num_topk) of a case."""
    from ascendkit.testing import scores

    p = case.params
    shape = (p["num_tokens"], p["num_experts"])
    if "wrong" not in p:
        return scores(p["scores"], shape, seed), p["num_topk"]
    return _wrong(p["wrong"], scores("random", shape, seed), p["num_topk"])


def _wrong(what: str, scores: torch.Tensor, topk: int) -> tuple[Any, ...]:
    return {
        "float64": (scores.double(), topk),
        "one_dimension": (scores[0], topk),
        "transposed": (scores.T.contiguous().T, topk),
        "no_experts": (scores[:, :0].contiguous(), topk),
        "topk_0": (scores, 0),
        "topk_above_experts": (scores[:, :5].contiguous(), topk),
        "topk_33": (scores, 33),
        "topk_float": (scores, 8.0),
        "topk_bool": (scores, True),
        "list": (scores.tolist(), topk),
    }[what]
