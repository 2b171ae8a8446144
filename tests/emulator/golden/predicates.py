"""Predicates: patterns, tails, logic, packing, interleaving."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.emulator.golden.case import Case
from tests.emulator.oracle import registers as oracle

PATTERNS = [
    *("ALL", "ALLF", "M3", "M4", "H", "Q"),
    *(f"VL{n}" for n in (1, 2, 3, 4, 8, 16, 32, 64, 128)),
]


def _patterns() -> Iterator[Case]:
    for width in (8, 16, 32):
        lanes = 2048 // width
        name = f"asc_create_mask_b{width}"
        for pattern in PATTERNS:
            bits = oracle.spread(oracle.pattern(pattern, lanes), width // 8)
            yield Case(
                name,
                pattern,
                f"b0 = {name}(PAT_{pattern});",
                ("bits",),
                ("bits",),
                lambda m, bits=bits: np.tile(bits, (len(m), 1)),
                rows=1,
            )
        name = f"asc_update_mask_b{width}"

        def tail(unused, count, lanes=lanes, width=width):
            n = int(count)
            bits = oracle.spread(np.arange(lanes) < n, width // 8)
            rest = np.full((len(unused), 64), max(n - lanes, 0), np.uint32)
            return np.tile(bits, (len(unused), 1)), rest

        yield Case(
            name,
            "tail",
            f"uint32_t left = s0; b0 = {name}(left); asc_duplicate_scalar(d0, left, "
            "asc_create_mask_b8(PAT_ALL));",
            ("bits",),
            ("bits", "u32"),
            tail,
            scalars=("u32",),
            scalar_draw=lambda rng, rows, lanes=lanes: np.array(
                [[3, 0, 1, lanes - 1, lanes, lanes + 1, 5 * lanes + 2, 2**32 - 1]], np.uint32
            )[:, rng.permutation(8)],
            rows=1,
        )


def _logic() -> Iterator[Case]:
    for op, f in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.not_equal)):
        yield Case(
            f"asc_{op}.predicate",
            "",
            f"asc_{op}(b0, m0, m1, m2);",
            ("bits",) * 3,
            ("bits",),
            lambda a, b, m, f=f: f(a, b) & m,
            rows=36,
            drawers=MIXED,
        )
    yield Case(
        "asc_not.predicate",
        "",
        "asc_not(b0, m0, m1);",
        ("bits",) * 2,
        ("bits",),
        lambda a, m: ~a & m,
        rows=36,
        drawers=MIXED,
    )
    yield Case(
        "asc_select.predicate",
        "",
        "asc_select(b0, m0, m1, m2);",
        ("bits",) * 3,
        ("bits",),
        lambda a, b, m: np.where(m, a, b),
        rows=36,
        drawers=MIXED,
    )


def _random_bits(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.random((rows, 256)) < 0.6


MIXED = dict.fromkeys(range(3), _random_bits)


def _moves() -> Iterator[Case]:
    for name, f, high in (
        ("asc_pack_to_low", oracle.pack_bits, False),
        ("asc_pack_to_high", oracle.pack_bits, True),
        ("asc_unpack_lower", oracle.unpack_bits, False),
        ("asc_unpack_upper", oracle.unpack_bits, True),
    ):
        yield Case(
            f"{name}.predicate",
            "",
            f"{name}(b0, m0);",
            ("bits",),
            ("bits",),
            lambda a, f=f, high=high: f(a, high),
            drawers=MIXED,
        )
    for width in (8, 16, 32):
        for name, f in (
            ("asc_intlv", oracle.interleave_bits),
            ("asc_deintlv", oracle.deinterleave_bits),
        ):
            yield Case(
                f"{name}_b{width}",
                "",
                f"{name}_b{width}(b0, b1, m0, m1);",
                ("bits", "bits"),
                ("bits", "bits"),
                lambda a, b, f=f, width=width: f(a, b, width // 8),
                drawers=MIXED,
            )


CASES = [*_patterns(), *_logic(), *_moves()]
