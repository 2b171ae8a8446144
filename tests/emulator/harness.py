"""Runs snippets of AscendC on rows of registers, predicates and memory; faults; counts.

A bank is one source text with one vector function a snippet, so that hundreds of instructions cost
one compilation. A row of a snippet is its inputs and outputs side by side in the unified buffer;
the kernel moves rows in and out as any kernel would, and uses the public interface alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ascendkit.emulator import device, toolchain
from ascendkit.emulator.kernel import EmulatedKernel
from tests.emulator.oracle.types import LANES, REGISTER

CTYPE = {
    "f32": "float",
    "f16": "half",
    "bf16": "bfloat16_t",
    "e4m3": "float8_e4m3_t",
    "e5m2": "float8_e5m2_t",
    "e8m0": "float8_e8m0_t",
    "e2m1x2": "float4_e2m1x2_t",
    "e1m2x2": "float4_e1m2x2_t",
    **{f"u{n}": f"uint{n}_t" for n in (8, 16, 32, 64)},
    **{f"s{n}": f"int{n}_t" for n in (8, 16, 32, 64)},
}
VECTOR = {
    name: "vector_" + {"e4m3": "f8e4m3", "e5m2": "f8e5m2", "e8m0": "f8e8m0"}.get(name, name)
    for name in CTYPE
} | {"e2m1x2": "vector_f4e2m1x2", "e1m2x2": "vector_f4e1m2x2"}
OUTPUTS_AT = 128 << 10
"""Where outputs lie in the unified buffer; inputs start at 0."""

_TEXT = (Path(__file__).parent / "bank.asc").read_text()


def width(kind: str) -> int:
    """Bytes of a field: a register of a lane type, ``bits`` (a predicate) or ``raw:N`` memory."""
    if kind.startswith("raw:"):
        return int(kind[4:])
    return 32 if kind == "bits" else REGISTER


@dataclass(frozen=True)
class Snippet:
    """Statements over registers ``r0 r1 ...``, predicates ``m0 ...`` and memory ``p0 ...`` coming
    in, ``d0 ...``, ``b0 ...`` and ``q0 ...`` going out, and scalars ``s0 s1``."""

    body: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    scalars: tuple[str, ...] = ()

    def function(self, name: str) -> str:
        """The vector function of this snippet."""
        before, after = [], []
        for kinds, pointer, names in ((self.takes, "in", "rmp"), (self.gives, "out", "dbq")):
            at, seen = 0, {"r": 0, "m": 0, "p": 0}
            for kind in kinds:
                group = "p" if kind.startswith("raw:") else "m" if kind == "bits" else "r"
                variable = f"{names['rmp'.index(group)]}{seen[group]}"
                seen[group] += 1
                declare, take, give = _access(kind, variable, f"{pointer} + {at}")
                before.append(declare + (take if pointer == "in" else ""))
                if pointer == "out":
                    after.append(give)
                at += width(kind)
        scalars = [
            f"  const {CTYPE[t]} s{i} = std::bit_cast<{CTYPE[t]}>(static_cast<uint"
            f"{8 * LANES[t].bytes}_t>(s{i}_bits));"
            for i, t in enumerate(self.scalars)
        ]
        rows = (sum(map(width, self.takes)), sum(map(width, self.gives)))
        return "\n".join(
            [
                f"__simd_vf__ inline void {name}(__ubuf__ uint8_t *in, __ubuf__ uint8_t *out, "
                "int32_t rows, uint64_t s0_bits, uint64_t s1_bits) {",
                *scalars,
                f"  for (int32_t row = 0; row < rows; ++row, in += {rows[0]}, out += {rows[1]}) {{",
                *(f"    {line}" for line in before if line),
                f"    {self.body}",
                *(f"    {line}" for line in after if line),
                "  }",
                "}",
            ]
        )


def _access(kind: str, name: str, address: str) -> tuple[str, str, str]:
    """Declaration, load and store of one field."""
    if kind.startswith("raw:"):
        return f"__ubuf__ uint8_t *{name} = {address};", "", ""
    if kind == "bits":
        pointer = f"(__ubuf__ uint32_t *)({address})"
        return (
            f"vector_bool {name};",
            f" asc_loadalign({name}, {pointer}, 0);",
            f"asc_storealign({pointer}, {name}, 0);",
        )
    pointer = f"(__ubuf__ {CTYPE[kind]} *)({address})"
    return (
        f"{VECTOR[kind]} {name};",
        f" asc_loadalign({name}, {pointer}, 0);",
        f"asc_storealign({pointer}, {name}, 0, asc_create_mask_b8(PAT_ALL));",
    )


class Bank:
    """Snippets compiled together on first use."""

    def __init__(self, snippets: Sequence[Snippet]) -> None:
        self.snippets = list(snippets)
        functions = "\n".join(s.function(f"case_{i}") for i, s in enumerate(snippets))
        calls = "\n".join(
            f"      case {i}: case_{i}((__ubuf__ uint8_t *)0, (__ubuf__ uint8_t *)131072, n, s0, "
            "s1); break;"
            for i in range(len(snippets))
        )
        self.text = _TEXT.replace("//FUNCTIONS", functions).replace("//CASES", calls)

    @cached_property
    def kernel(self) -> EmulatedKernel:
        """The compiled bank."""
        return EmulatedKernel(self.text, "bank")

    def run(
        self,
        which: int,
        takes: Sequence[np.ndarray],
        before: Sequence[np.ndarray | None],
        scalars: Sequence[int] = (),
        *,
        trace: int = 1,
    ) -> list[np.ndarray]:
        """Outputs of every row. ``before`` is what ``raw`` outputs hold at first."""
        snippet = self.snippets[which]
        rows = len(takes[0]) if takes else len(next(b for b in before if b is not None))
        data = np.concatenate(
            [*map(_bytes, snippet.takes, takes)] or [np.zeros((rows, 32), np.uint8)], axis=1
        )
        start = [
            np.full((rows, width(k)), 0xA5, np.uint8) if b is None else _bytes(k, b)
            for k, b in zip(snippet.gives, before)
        ]
        out = np.concatenate(start, axis=1)
        step = max(1, OUTPUTS_AT // max(data.shape[1], out.shape[1]))
        launch(
            self.kernel,
            [data, out, which, rows, step, data.shape[1], out.shape[1], *[*scalars, 0, 0][:2]],
            trace=trace,
        )
        ends = np.cumsum([width(k) for k in snippet.gives])[:-1]
        return [_typed(k, part) for k, part in zip(snippet.gives, np.split(out, ends, axis=1))]


def _bytes(kind: str, array: np.ndarray) -> np.ndarray:
    if kind == "bits":
        return np.packbits(array.astype(bool), axis=1, bitorder="little")
    return np.ascontiguousarray(array).view(np.uint8)


def _typed(kind: str, raw: np.ndarray) -> np.ndarray:
    if kind == "bits":
        return np.unpackbits(np.ascontiguousarray(raw), axis=1, bitorder="little").astype(bool)
    if kind in LANES:
        return np.ascontiguousarray(raw).view(LANES[kind].code)
    return np.ascontiguousarray(raw)


def launch(kernel: EmulatedKernel, args: Sequence[object], **options: int) -> None:
    """Launch with NumPy arrays (contiguous, written in place) and numbers."""
    regions, values = [], []
    for i, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            assert arg.flags.c_contiguous
            regions.append(device.Region(f"argument {i}", arg.ctypes.data, arg.nbytes))
            arg = arg.ctypes.data
        values.append(arg)
    kernel.launch(values, **({"grid": 1, "threads": 1} | options), extra_regions=regions)


# ---- faults and counts --------------------------------------------------------------------------

FAULTS = {1: "last bit", 2: "sign", 3: "second lane dropped", 4: "lanes shifted"}


@contextmanager
def fault(instruction: str, kind: int) -> Iterator[None]:
    """Inside the block the instrumented build of ``instruction`` is wrong."""
    set_fault = toolchain.symbol("ak_set_fault")
    set_fault.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
    set_fault(instruction.encode(), kind)
    try:
        yield
    finally:
        set_fault(instruction.encode(), 0)


class _Slot(ctypes.Structure):
    pass


_Slot._fields_ = [
    ("name", ctypes.c_char_p),
    ("count", ctypes.c_uint64),
    ("fault", ctypes.c_uint32),
    ("next", ctypes.POINTER(_Slot)),
]


def counts() -> dict[str, int]:
    """How often each instruction has run in instrumented builds of this process."""
    slots = toolchain.symbol("ak_slots")
    slots.restype = ctypes.POINTER(_Slot)
    found: dict[str, int] = {}
    at = slots()
    while at:
        found[at.contents.name.decode()] = at.contents.count
        at = at.contents.next
    return found
