"""Lane-wise arithmetic and logic; inactive lanes of the result are zero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.emulator.golden import draw
from tests.emulator.golden.case import Case
from tests.emulator.oracle import lanes as oracle
from tests.emulator.oracle.types import LANES, Lane, zeroing

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32")
FLOATS = ("f16", "f32")
ALL = (*INTEGERS, "f16", "bf16", "f32")
WIDE = ("u16", "s16", "u32", "s32", "f16", "bf16", "f32")
SIGNED = ("s8", "s16", "s32", *FLOATS)
# Element types of the operations as TileLang's list of merging overloads validates them.
TYPES = {
    "add": ALL,
    "sub": ALL,
    "mul": WIDE,
    "div": ("u16", "s16", "u32", "s32", *FLOATS),
    "max": ALL,
    "min": ALL,
    "and": ALL,
    "or": ALL,
    "xor": ALL,
    "not": ALL,
    "prelu": FLOATS,
    "leakyrelu": FLOATS,
    "abs_sub": FLOATS,
    "neg": SIGNED,
    "abs": SIGNED,
    "relu": ("s32", *FLOATS),
    "sqrt": FLOATS,
    "exp": FLOATS,
    "ln": FLOATS,
}
ULP = {"exp": 1, "ln": 1}
"""exp and ln promise one unit in the last place; exact results (lane 0 holds one) are exact."""


def operand(op: str, kind: str, side: int) -> dict[int, draw.Draw]:
    """Operands whose ordinary values suit the operation."""
    if op == "exp":
        return {side: _starting(draw.within(kind, -10, 10), kind, (0.0, 2.0))}
    if op == "ln":
        return {side: _starting(draw.codes(kind), kind, (1.0, 3.0))}
    if op == "sqrt":
        return {side: _positive(kind)}
    return {}


def _starting(base: draw.Draw, kind: str, first: tuple[float, float]) -> draw.Draw:
    lane = LANES[kind]

    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        codes = base(rng, rows)
        edges = rng.choice(draw.specials(lane), codes.shape)
        codes = np.where(rng.random(codes.shape) < 0.2, edges, codes)
        codes[:, :2] = lane.codes(np.array(first))
        return codes

    return drawer


def _positive(kind: str) -> draw.Draw:
    lane = LANES[kind]

    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        codes = draw.codes(kind)(rng, rows)
        sign = lane.code.type(1 << (8 * lane.bytes - 1))
        return np.where(rng.random(codes.shape) < 0.9, codes & ~sign, codes)

    return drawer


def _binary() -> Iterator[Case]:
    for op in ("add", "sub", "mul", "div", "max", "min", "and", "or", "xor", "prelu", "abs_sub"):
        for kind in TYPES[op]:

            def expect(a, b, m, op=op, lane=LANES[kind]):
                result = (
                    oracle.abs_sub(lane, a, b) if op == "abs_sub" else oracle.binary(op, lane, a, b)
                )
                return zeroing(result, m, lane)

            yield Case(
                f"asc_{op}",
                kind,
                f"asc_{op}(d0, r0, r1, m0);",
                (kind, kind, "bits"),
                (kind,),
                expect,
                copies=op in ("and", "or", "xor"),
            )


def _unary() -> Iterator[Case]:
    for op in ("neg", "abs", "relu", "sqrt", "exp", "ln", "not"):
        for kind in TYPES[op]:

            def expect(a, m, op=op, lane=LANES[kind]):
                return zeroing(oracle.unary(op, lane, a), m, lane)

            yield Case(
                f"asc_{op}",
                kind,
                f"asc_{op}(d0, r0, m0);",
                (kind, "bits"),
                (kind,),
                expect,
                drawers=operand(op, kind, 0),
                ulp=ULP.get(op, 0),
                copies=op == "not",
            )


def scalar_case(name: str, op: str, kind: str, given: str) -> Case:
    """A register with a scalar of type ``given``, which first becomes a lane (inferred)."""
    lane, source = LANES[kind], LANES[given]

    def expect(a, m, s):
        scalar = lane.codes(source.values(np.array([s])))
        return zeroing(oracle.binary(op, lane, a, np.broadcast_to(scalar, a.shape)), m, lane)

    return Case(
        name,
        kind if kind == given else f"{kind} with {given}",
        f"{name}(d0, r0, s0, m0);",
        (kind, "bits"),
        (kind,),
        expect,
        scalars=(given,),
    )


def _scalar() -> Iterator[Case]:
    for op in ("add", "mul", "max", "min"):
        for kind in TYPES[op]:
            yield scalar_case(f"asc_{op}_scalar", op, kind, kind)
        yield scalar_case(f"asc_{op}_scalar", op, "f16", "f32")
    for kind in TYPES["leakyrelu"]:
        yield scalar_case("asc_leakyrelu", "prelu", kind, kind)


def amounts(lane: Lane) -> draw.Draw:
    """Shift amounts from -1 to the width, as lanes; the first are ordinary."""

    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        amounts = rng.integers(-1, 8 * lane.bytes + 2, (rows, lane.count))
        amounts[:, :2] = 1
        return amounts.astype(lane.code)

    return drawer


def _shifts() -> Iterator[Case]:
    for kind in INTEGERS:
        lane = LANES[kind]
        by = f"s{8 * lane.bytes}"
        for name, left in (("asc_shiftleft", True), ("asc_shiftright", False)):

            def expect(a, amounts, m, lane=lane, left=left):
                signed = amounts.view(f"i{lane.bytes}")
                return zeroing(oracle.shift(lane, a, signed, left), m, lane)

            def by_scalar(a, m, amount, lane=lane, left=left):
                amounts = np.full(a.shape, amount.view(np.int32), np.int64)
                return zeroing(oracle.shift(lane, a, amounts, left), m, lane)

            yield Case(
                name,
                kind,
                f"{name}(d0, r0, r1, m0);",
                (kind, by, "bits"),
                (kind,),
                expect,
                drawers={0: bright(lane), 1: amounts(lane)},
            )
            yield Case(
                f"{name}_scalar",
                kind,
                f"{name}_scalar(d0, r0, s0, m0);",
                (kind, "bits"),
                (kind,),
                by_scalar,
                scalars=("s32",),
                drawers={0: bright(lane)},
                scalar_draw=scalar_amounts(8 * lane.bytes),
            )


def bright(lane: Lane) -> draw.Draw:
    """Lanes whose second one stays visible after a shift by one."""

    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        codes = draw.codes(lane.name)(rng, rows)
        codes[:, 0], codes[:, 1] = 6, 20
        return codes

    return drawer


def scalar_amounts(bits: int) -> draw.Draw:
    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        middle = int(rng.integers(1, bits))
        return np.array([[1, middle, bits - 1, bits]], np.int32).view(np.uint32)

    return drawer


def _fused() -> Iterator[Case]:
    for kind in ("f16", "bf16", "f32"):
        lane = LANES[kind]

        def madd(old, a, b, m, lane=lane):
            return zeroing(oracle.fma(lane, old, a, b), m, lane)

        def axpy(old, a, m, s, lane=lane):
            return zeroing(oracle.fma(lane, a, np.broadcast_to(s, a.shape), old), m, lane)

        yield Case(
            "asc_madd",
            kind,
            "d0 = r0; asc_madd(d0, r1, r2, m0);",
            (kind, kind, kind, "bits"),
            (kind,),
            madd,
        )
        yield Case(
            "asc_axpy",
            kind,
            "d0 = r0; asc_axpy(d0, r1, s0, m0);",
            (kind, kind, "bits"),
            (kind,),
            axpy,
            scalars=(kind,),
        )

    lane = LANES["f32"]
    yield Case(
        "asc_exp_sub",
        "f32",
        "asc_exp_sub(d0, r0, r1, m0);",
        ("f32", "f32", "bits"),
        ("f32",),
        lambda a, b, m: zeroing(oracle.exp_sub(lane, a, b), m, lane),
        drawers={i: _starting(draw.within("f32", -8, 8), "f32", (1.0, 3.0)) for i in (0, 1)},
        ulp=1,
    )


CASES = [*_binary(), *_unary(), *_scalar(), *_shifts(), *_fused()]
