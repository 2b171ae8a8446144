"""Cases of expand_to_fused: maps of real routings, every row width; then what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Contract
from ascendkit.testing import sizes

if TYPE_CHECKING:
    import torch

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "bytes move unchanged, NaN payloads included",
        "rows without an expert are zero, also without tokens",
        "places below 0 or beyond the result are left out",
        "a place without an expert, or named twice, raises ValueError under check_values",
    ),
    oracle="one place at a time",
    source="TileKernels before 2.1.0, expand_to_fused",
)

DTYPES = ("bfloat16", "float8_e4m3fn", "float32", "float16", "uint8")


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 33):
        yield case(tokens, 8, 64, 256)
    yield case(0, 2, 8, 64, spare=5)
    yield case(17, 6, 72, 512, masked=0.5)
    yield case(9, 4, 8, 128, masked=1.0, spare=3)
    for dtype in DTYPES[1:]:
        yield case(7, 3, 16, 96, dtype)
    for hidden in (1, 2, 7, 8, 33, 100, 576):
        yield case(13, 2, 6, hidden, "float8_e4m3fn" if hidden % 2 else "bfloat16")
    for hidden in (72, 2048, 2560, 7168, 30000):
        yield case(5, 2, 4, hidden, level="core", alignment=2)
    for tokens in sizes(32, 128, low=2, high=130):
        yield case(tokens, 3, 12, 40, level="core", masked=0.2)
    for topk in (1, 9, 16, 32):
        yield case(11, topk, 32, 64, level="core", alignment=128)
    # More than 2**31 bytes of result: 41000 rows of 56 KiB.
    yield case(5000, 8, 32, 28672, level="full")
    for align in (1, 64):
        for tokens in (128, 4096):
            yield case(tokens, 8, 256, 7168, level="full", bench=True, alignment=align)
        yield case(8192, 6, 72, 2560, level="full", bench=True, alignment=align)
    for wrong, error in WRONG.items():
        yield Case(f"refused-{wrong}", params(4, 2, 8, 64) | {"wrong": wrong}, error=error)


WRONG = {
    "flat": "ValueError",
    "strided": "ValueError",
    "places_int64": "TypeError",
    "places_rows": "ValueError",
    "experts_2d": "ValueError",
    "experts_int64": "TypeError",
    "no_columns": "ValueError",
    "no_expert": "ValueError",
    "named_twice": "ValueError",
    "list": "TypeError",
}


def params(
    tokens: int,
    topk: int,
    experts: int,
    hidden: int,
    dtype: str = "bfloat16",
    masked: float = 0.0,
    alignment: int = 4,
    spare: int = 0,
) -> dict[str, Any]:
    """Parameters of a case; the map has ``spare`` more rows than it needs."""
    width = {"float32": 4, "bfloat16": 2, "float16": 2}.get(dtype, 1)
    found = {
        "num_tokens": tokens, "num_topk": topk, "num_experts": experts, "hidden": hidden,
        "row_bytes": hidden * width, "dtype": dtype, "masked": masked, "alignment": alignment,
        "spare": spare,
    }  # fmt: skip
    return found


def case(
    tokens: int,
    topk: int,
    experts: int,
    hidden: int,
    dtype: str = "bfloat16",
    *,
    level: str = "smoke",
    bench: bool = False,
    **others: Any,
) -> Case:
    """One legal case."""
    found = params(tokens, topk, experts, hidden, dtype, **others)
    if bench:
        # The size of the result is part of the cost; routing decides it, so a case fixes the seed.
        found["seed"] = 1
        found["num_expanded_tokens"] = len(maps(found, 1)[1])
    tail = "".join(f"-{name}{value}" for name, value in others.items())
    name = f"{tokens}x{topk}of{experts}x{hidden}-{dtype}{tail}{'-bench' if bench else ''}"
    return Case(name, found, level, bench=bench)


def maps(p: dict[str, Any], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(token_topk_to_pos, pos_to_expert) of a random routing."""
    import torch

    from ascendkit.testing import generator, routing
    from tilekernels.get_fused_mapping.reference import reference as mapping

    tokens, topk, experts = p["num_tokens"], p["num_topk"], p["num_experts"]
    idx = routing("uniform", tokens, topk, experts, seed)
    idx = idx.masked_fill(torch.rand(idx.shape, generator=generator(seed)) < p["masked"], -1)
    align = p["alignment"]
    size = int(idx.clamp(min=-1)[idx >= 0].bincount().add(align - 1).div(align).floor().sum())
    found = mapping(idx, experts, size * align + p["spare"], align)
    return found[3], found[0]


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(x, token_topk_to_pos, pos_to_expert); any bytes, so NaN payloads too."""
    import torch

    p = dict(case.params)
    seed = p.get("seed", seed)
    places, experts = maps(p, seed)
    x = random_rows(p["num_tokens"], p["row_bytes"], getattr(torch, p["dtype"]), seed)
    bare, twice = experts.clone(), places.clone()
    if p.get("wrong") == "no_expert":
        bare[places[2, 1]] = -1
    if p.get("wrong") == "named_twice":
        twice[2, 1] = places[1, 0]
    return {
        "": (x, places, experts),
        "flat": (x.flatten(), places, experts),
        "strided": (x[:, ::2], places, experts),
        "places_int64": (x, places.long(), experts),
        "places_rows": (x, places[1:], experts),
        "experts_2d": (x, places, experts[None]),
        "experts_int64": (x, places, experts.long()),
        "no_columns": (x[:, :0].contiguous(), places, experts),
        "no_expert": (x, places, bare),
        "named_twice": (x, twice, experts),
        "list": (x.tolist(), places, experts),
    }[p.get("wrong", "")]


def random_rows(rows: int, row_bytes: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Random bytes as (rows, row_bytes / width) of ``dtype``."""
    import torch

    from ascendkit.testing import generator

    g = generator(seed)
    flat = torch.randint(0, 256, (rows, row_bytes), generator=g, dtype=torch.uint8)
    return flat.view(dtype)
