"""The native calls with a write mode: merging keeps inactive lanes of the destination."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tests.emulator.golden import across, arith
from tests.emulator.golden.case import Case
from tests.emulator.oracle import lanes as oracle
from tests.emulator.oracle import registers
from tests.emulator.oracle.types import LANES, Lane, merging, zeroing

MODES = ("MODE_MERGING", "MODE_ZEROING")
BINARY = {
    "vadd": "add",
    "vsub": "sub",
    "vmul": "mul",
    "vdiv": "div",
    "vmax": "max",
    "vmin": "min",
    "vabsdif": "abs_sub",
    "vand": "and",
    "vor": "or",
    "vxor": "xor",
}
SCALAR = {"vadds": "add", "vmuls": "mul", "vmaxs": "max", "vmins": "min"}
UNARY = {
    "vexp": "exp",
    "vln": "ln",
    "vsqrt": "sqrt",
    "vabs": "abs",
    "vneg": "neg",
    "vrelu": "relu",
    "vnot": "not",
}


def settled(result: np.ndarray, old: np.ndarray, mask: np.ndarray, lane: Lane, mode: str):
    """The destination under a write mode."""
    if mode == "MODE_MERGING":
        return merging(result, old, mask, lane)
    return zeroing(result, mask, lane)


def case(
    name: str,
    kind: str,
    mode: str,
    operands: tuple[str, ...],
    f: Callable[..., np.ndarray],
    **options,
) -> Case:
    """``::name(d0, operands, m0, mode)``: ``r0`` is the old destination, then come the operands.

    ``f(*operands)`` gives all lanes; a name of ``s0`` among the operands is a scalar.
    """
    lane = LANES[kind]
    registers_in = tuple(o for o in operands if o != "s0")
    names = [f"r{i + 1}" for i in range(len(registers_in))]
    call = ", ".join([*names, *(["s0"] if "s0" in operands else [])])

    def expect(old, *rest, lane=lane, mode=mode):
        inputs, mask, scalar = rest[: len(names)], rest[len(names)], rest[len(names) + 1 :]
        return settled(f(*inputs, *scalar), old, mask, lane, mode)

    drawers = {i + 1: d for i, d in options.pop("drawers", {}).items()}
    return Case(
        f"::{name}",
        f"{kind} {mode[5:].lower()}",
        f"d0 = r0; ::{name}(d0, {call}, m0, {mode});",
        (kind, *registers_in, "bits"),
        (kind,),
        expect,
        drawers=drawers,
        **options,
    )


def types(op: str, mode: str) -> tuple[str, ...]:
    """TileLang prints these calls to merge: zeroing, which shares its code, is run on one type."""
    return arith.TYPES[op] if mode == "MODE_MERGING" else arith.TYPES[op][-1:]


def _arithmetic(mode: str) -> Iterator[Case]:
    for name, op in BINARY.items():
        for kind in types(op, mode):
            lane = LANES[kind]
            f = (
                oracle.abs_sub
                if op == "abs_sub"
                else lambda lane, a, b, op=op: oracle.binary(op, lane, a, b)
            )
            yield case(name, kind, mode, (kind, kind), lambda a, b, f=f, lane=lane: f(lane, a, b))
    for name, op in SCALAR.items():
        for kind in types(op, mode):
            lane = LANES[kind]
            yield case(
                name,
                kind,
                mode,
                (kind, "s0"),
                lambda a, s, op=op, lane=lane: oracle.binary(op, lane, a, np.full(a.shape, s)),
                scalars=(kind,),
            )
    for name, op in UNARY.items():
        for kind in types(op, mode):
            lane = LANES[kind]
            yield case(
                name,
                kind,
                mode,
                (kind,),
                lambda a, op=op, lane=lane: oracle.unary(op, lane, a),
                ulp=arith.ULP.get(op, 0),
                drawers=arith.operand(op, kind, 0),
            )
    for kind in arith.INTEGERS if mode == "MODE_MERGING" else ("s16",):
        lane = LANES[kind]
        amount = f"s{8 * lane.bytes}"
        for name, left in (("vshl", True), ("vshr", False)):
            yield case(
                name,
                kind,
                mode,
                (kind, amount),
                lambda a, by, lane=lane, left=left: oracle.shift(
                    lane, a, by.view(f"i{lane.bytes}"), left
                ),
                drawers={0: arith.bright(lane), 1: arith.amounts(lane)},
            )
            yield case(
                f"{name}s",
                kind,
                mode,
                (kind, "s0"),
                lambda a, by, lane=lane, left=left: oracle.shift(
                    lane, a, np.full(a.shape, by.view(np.int32), np.int64), left
                ),
                scalars=("s32",),
                drawers={0: arith.bright(lane)},
                scalar_draw=arith.scalar_amounts(8 * lane.bytes),
            )


def _broadcast(mode: str) -> Iterator[Case]:
    for kind in ("u8", "s16", "u32", "f16", "f32"):
        lane = LANES[kind]

        def scalar(old, m, s, lane=lane):
            return settled(np.full(old.shape, s), old, m, lane, mode)

        yield Case(
            "::vdup",
            f"{kind} {mode[5:].lower()}",
            f"d0 = r0; ::vdup(d0, s0, m0, {mode});",
            (kind, "bits"),
            (kind,),
            scalar,
            scalars=(kind,),
            copies=True,
        )
        for at, lane_number in (("POS_LOWEST", 0), ("POS_HIGHEST", -1)):

            def broadcast(old, a, m, lane=lane, n=lane_number):
                return settled(np.repeat(a[:, [n]], lane.count, axis=1), old, m, lane, mode)

            yield Case(
                "::vdup.lane",
                f"{kind} {at} {mode[5:].lower()}",
                f"d0 = r0; ::vdup(d0, r1, m0, {at}, {mode});",
                (kind, kind, "bits"),
                (kind,),
                broadcast,
                copies=True,
            )


def _fused(mode: str) -> Iterator[Case]:
    for kind in ("f16", "bf16", "f32", "s32", "u16"):
        lane = LANES[kind]
        for name, f in (
            ("vmula", lambda old, a, b, lane=lane: oracle.fma(lane, a, b, old)),
            ("vmadd", lambda old, a, b, lane=lane: oracle.fma(lane, old, a, b)),
        ):
            yield Case(
                f"::{name}",
                f"{kind} {mode[5:].lower()}",
                f"d0 = r0; ::{name}(d0, r1, r2, m0, {mode});",
                (kind, kind, kind, "bits"),
                (kind,),
                lambda old, a, b, m, f=f, lane=lane: settled(f(old, a, b), old, m, lane, mode),
            )
    for kind in ("f16", "f32"):
        lane = LANES[kind]
        yield Case(
            "::vaxpy",
            f"{kind} {mode[5:].lower()}",
            f"d0 = r0; ::vaxpy(d0, r1, s0, m0, {mode});",
            (kind, kind, "bits"),
            (kind,),
            lambda old, a, m, s, lane=lane: settled(
                oracle.fma(lane, a, np.full(a.shape, s), old), old, m, lane, mode
            ),
            scalars=(kind,),
        )


def _across(mode: str) -> Iterator[Case]:
    """Reductions. Merging a block result or a squeeze keeps lanes outside the mask (guessed); a
    full reduction replaces the lanes that hold its result: one for a sum, two for an extreme."""
    for kind in ("f16", "f32"):
        lane = LANES[kind]
        for name, f in (
            ("vcpadd", registers.pair_sum),
            ("vcgadd", registers.reduce_sum_blocks),
            ("vcgmax", lambda lane, a, m: registers.reduce_best_blocks(lane, a, m, True)),
            ("vcgmin", lambda lane, a, m: registers.reduce_best_blocks(lane, a, m, False)),
            ("vsqz", lambda lane, a, m: registers.squeeze(a, m, lane)),
        ):

            def expect(old, a, m, f=f, lane=lane):
                result = f(lane, a, m)
                return merging(result, old, m, lane) if mode == "MODE_MERGING" else result

            yield _reduction(name, kind, kind, mode, expect)
    for kind in ("u16", "s16", "u32", "s32", "f16", "f32"):
        lane = LANES[kind]
        wide = registers.WIDENED.get(kind, kind)
        for name, f, kept in (
            ("vcadd", registers.reduce_sum, 1),
            ("vcmax", lambda lane, a, m: registers.reduce_best(lane, a, m, True), 2),
            ("vcmin", lambda lane, a, m: registers.reduce_best(lane, a, m, False), 2),
        ):

            def whole(old, a, m, f=f, lane=lane, kept=kept):
                result = f(lane, a, m)
                if mode == "MODE_MERGING":
                    result[:, kept:] = old[:, kept:]
                return result

            yield _reduction(name, kind, wide if name == "vcadd" else kind, mode, whole)


def _reduction(name: str, kind: str, result: str, mode: str, expect) -> Case:
    return Case(
        f"::{name}",
        f"{kind} {mode[5:].lower()}",
        f"d0 = r0; ::{name}(d0, r1, m0, {mode});",
        (result, kind, "bits"),
        (result,),
        expect,
        drawers={1: across.tied(kind) if name[-3:] in ("max", "min") else across.tame(kind)},
        copies=name == "vsqz",
    )


CASES = [
    case
    for mode in MODES
    for family in (_arithmetic, _broadcast, _fused, _across)
    for case in family(mode)
]
