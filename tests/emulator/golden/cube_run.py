"""One run of ``cube.asc``: its parameters as dataclasses, its operands as tiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.emulator.golden.program import compiled, first_difference
from tests.emulator.harness import launch
from tests.emulator.oracle import cube as oracle
from tests.emulator.oracle.types import LANES

TEXT = (Path(__file__).parent / "cube.asc").read_text()
PLAIN = ("f16", "bf16", "f32", "s8")
EIGHT = ("e4m3", "e5m2")
FOUR = tuple(oracle.FOUR_BIT)
Types = tuple[str, str, bool]
TYPES: list[Types] = [
    *((k, k, False) for k in PLAIN),
    *((a, b, mx) for mx in (False, True) for a in EIGHT for b in EIGHT),
    *((a, b, True) for a, b in ((0, 0), (1, 1), (0, 1), (1, 0)) for a, b in [(FOUR[a], FOUR[b])]),
]
"""(A, B, block-scaled) in the order of the program's cases."""
RAW, ND2NZ, DN2NZ = range(3)


@dataclass(frozen=True)
class Operand:
    """How one operand gets from global memory to L0.

    Attributes:
        data: its bytes in global memory.
        mode: as they are (``RAW``), or through ND2NZ or DN2NZ with the next four arguments.
        n, d, stride, group: rows, elements a row, bytes from row to row, rows from column group to
            column group of the tile in L1.
        transpose, start, steps, strides: arguments of the load into L0.
    """

    data: np.ndarray
    mode: int = RAW
    n: int = 0
    d: int = 0
    stride: int = 0
    group: int = 0
    transpose: bool = False
    start: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class Scales:
    """E8M0 codes (rows, K / 32) that the data meets, inside a larger matrix ``whole``."""

    whole: np.ndarray
    start: tuple[int, int] = (0, 0)  # sixteens of rows, pairs along K
    rows: int = 0
    count: int = 0

    @property
    def codes(self) -> np.ndarray:
        x, y = 16 * self.start[0], 2 * self.start[1]
        return self.whole[x : x + self.rows, y : y + self.count]

    @property
    def load(self) -> tuple[int, ...]:
        """Lines in global memory, then the arguments of the load."""
        pairs = self.count // 2
        stride = self.whole.shape[1] // 2
        return (self.whole.size // 32, *self.start, self.rows // 16, pairs, stride, pairs)


@dataclass(frozen=True)
class Setting:
    """One run."""

    types: Types
    a: Operand
    b: Operand
    shape: tuple[int, int, int]  # m, k, n
    hf32: int = 0
    direction: int = 0
    count: int = 1  # matrices a FixPipe copy is told to move
    repeat: int = 1
    atomic: bool = False
    fill: tuple[int, ...] = ()  # bits of the word, value, offset, repeat, blocks, gap
    out: dict[str, int] = field(default_factory=dict)
    scales: tuple[Scales, ...] = ()


def run(s: Setting, before: np.ndarray) -> np.ndarray:
    """``before`` as the program leaves it: the result in global memory."""
    p = np.zeros(80, np.int32)
    m, k, n = s.shape
    p[:4] = TYPES.index(s.types), s.hf32, s.direction, s.count
    p[7] = s.atomic
    if s.fill:
        p[4:7], p[56:59] = s.fill[:3], s.fill[3:]
    for at, load, x in ((8, 24, s.a), (16, 32, s.b)):
        p[at : at + 5] = x.mode, x.n or len(x.data) // 32, x.d, x.stride, x.group
        p[load : load + 7] = (x.transpose, *x.start, *x.steps, *x.strides)
    p[40:44] = m, k, n, s.repeat
    defaults = dict(n=n, m=m, stride=n, source=oracle.up(m, 16), quant=0, relu=0, order=1, e5m2=0)
    p[48:56] = list((defaults | s.out).values())
    for at, scales in zip((64, 72), s.scales):
        p[at : at + 7] = scales.load
    blocks = [oracle.scale_blocks(x.whole) for x in s.scales] or [np.zeros(32, np.uint8)] * 2
    result = before.copy()
    data = [np.ascontiguousarray(x) for x in (s.a.data, s.b.data, *blocks)]
    launch(compiled(TEXT), [*data, result, p], trace=1)
    return result


def small(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Codes of small integers (for 4-bit floats: anything): their products sum exactly."""
    if kind in FOUR:
        return rng.integers(0, 16, shape).astype(np.uint8)
    lane = LANES[kind]
    numbers = rng.integers(1, 8, shape) * rng.choice([-1, 1], shape)
    return lane.codes(numbers if lane.kind == "s" else numbers.astype(np.float64))


def tiled(codes: np.ndarray, kind: str) -> Operand:
    """A matrix whose fractals are placed as they are and loaded whole."""
    rows, groups = -(-codes.shape[0] // 16), -(-codes.shape[1] // oracle.c0(kind))
    return Operand(oracle.fractals(codes, kind), steps=(rows, groups), strides=(rows, rows))


def unit_scales(a: np.ndarray, b: np.ndarray) -> tuple[Scales, ...]:
    """Scales of one."""
    shapes = [(oracle.up(len(x), 16), oracle.up(x.shape[1], 64) // 32) for x in (a, b)]
    return tuple(Scales(np.full(s, 127, np.uint8), (0, 0), *s) for s in shapes)


def expected(s: Setting, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact result of operands that are codes of small numbers."""
    left, right = oracle.values(s.types[0], a), oracle.values(s.types[1], b)
    if s.scales:
        left, right = (oracle.scaled(v, x.codes[: len(v)]) for v, x in zip((left, right), s.scales))
    return (left @ right.T) * s.repeat


def multiply(
    a: np.ndarray,
    b: np.ndarray,
    types: Types,
    *,
    left: Operand | None = None,
    right: Operand | None = None,
    **options: object,
) -> str:
    """Runs a x b^T and compares exactly. ``left``, ``right``: operands laid out otherwise."""
    if types[2]:
        options.setdefault("scales", unit_scales(a, b))
    s = Setting(
        types,
        left or tiled(a, types[0]),
        right or tiled(b, types[1]),
        (len(a), a.shape[1], len(b)),
        **options,
    )
    got = run(s, np.zeros((len(a), len(b)), np.float32))
    want = expected(s, a, b)
    if types[0] == "s8":
        return first_difference(got.view(np.int32), want.astype(np.int32), "int8")
    return first_difference(got, want.astype(np.float32), f"{types[0]} x {types[1]}")
