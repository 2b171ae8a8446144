"""Copies of the vector core: bursts, padding, atomic writes, scalar access to global memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.emulator.golden.program import Check, all_of, compiled, first_difference
from tests.emulator.harness import launch
from tests.emulator.oracle import copies as oracle
from tests.emulator.oracle.types import LANES

TEXT = (Path(__file__).parent / "copies.asc").read_text()
SIZE = 4096


def run(data: np.ndarray, out: np.ndarray, parameters: list[int], size: int = SIZE) -> np.ndarray:
    """Bytes of ``out`` after the program."""
    result = out.copy()
    words = np.array(parameters, np.int64).astype(np.int32)
    launch(compiled(TEXT), [data.copy(), result, words, size], trace=1)
    return result


def _bytes(rng: np.random.Generator, size: int = SIZE) -> np.ndarray:
    return rng.integers(1, 256, size, dtype=np.uint8)


def _loads(rng: np.random.Generator, wrong: int) -> str:
    verdicts = []
    shapes = (
        # element, start, bursts, bytes, left, right, source stride, destination stride, pad?
        (1, 0, 1, SIZE // 2, 0, 0, 0, 0, False),
        (1, 64, 5, 33, 0, 0, 70, 96, False),
        (1, 32, 3, 7, 0, 25, 9, 64, True),
        (2, 0, 4, 34, 0, 15, 100, 128, True),
        (4, 96, 4, 20, 3, 8, 36, 160, True),
        (4, 0, 2, 64, 2, 2, 64, 96, False),  # told not to pad
        (2, 0, 3, 2, 0, 0, 2, 32, True),  # nothing to pad
    )
    for element, start, count, size, left, right, src, dst, pad in shapes:
        data, before = _bytes(rng), _bytes(rng)
        value = int(rng.integers(1, 1 << 31))
        parameters = [0, start, count, size, left, right, src, dst, value, pad, element]
        got = run(data, before, parameters)
        want = oracle.padded(
            before,
            data,
            pad=np.array([value], np.uint32).view(np.uint8)[:element],
            left=left if pad else 0,
            right=right if pad else 0,
            count=count,
            size=size,
            dst_start=start,
            dst_stride=dst,
            src_stride=src,
        )
        verdicts.append(first_difference(got, want, f"load {parameters}"))
    return all_of(verdicts)


def _stores(rng: np.random.Generator, wrong: int) -> str:
    verdicts = []
    for to, of, count, size, dst, src in (
        (0, 0, 1, SIZE // 2, 0, 0),
        (3, 64, 6, 5, 11, 32),
        (128, 32, 3, 200, 256, 224),
        (7, 0, 4, 1, 1, 64),
    ):
        data, before = _bytes(rng), _bytes(rng)
        got = run(data, before, [1, to, of, count, size, dst, src])
        want = oracle.bursts(
            before,
            data,
            count=count,
            size=size,
            dst_start=to,
            src_start=of,
            dst_stride=dst,
            src_stride=src,
        )
        verdicts.append(first_difference(got, want, f"store of {count} x {size}"))
    return all_of(verdicts)


KINDS = {
    "float": "f32",
    "float16": "f16",
    "bfloat": "bf16",
    "int8": "s8",
    "int16": "s16",
    "int32": "s32",
}
ATOMICS = [(op, word) for op in ("add", "max", "min") for word in KINDS]


def _values(kind: str, rng: np.random.Generator) -> np.ndarray:
    lane = LANES[kind]
    if lane.kind == "s":
        return rng.integers(1, 256, 512, dtype=np.uint8).view(lane.code)
    return lane.codes(rng.uniform(-100, 100, 512 // lane.bytes))


def _atomics() -> Iterator[Check]:
    for number, (op, word) in enumerate(ATOMICS):

        def run_it(rng, wrong, number=number, op=op, lane=LANES[KINDS[word]]):
            written, held = _values(lane.name, rng), _values(lane.name, rng)
            before = np.tile(held.view(np.uint8), 3)
            got = run(written.view(np.uint8), before, [2, number], 512)
            parts = got.reshape(3, 512).view(lane.code)
            want = oracle.combine(op, lane, held, written)
            return all_of(
                [
                    first_difference(parts[0], want, f"{op} {lane.name}"),
                    first_difference(parts[1], written, "after asc_set_atomic_none"),
                    first_difference(parts[2], written, "after asc_init"),
                ]
            )

        names = (f"asc_set_atomic_{op}_{word}", "asc_set_atomic_none", "asc_init")
        yield Check(names, f"{op} {word}", run_it)


def _scalar_access(rng: np.random.Generator, wrong: int) -> str:
    verdicts = []
    for width in (1, 2, 4, 8):
        data = _bytes(rng, 64)
        if width == 2:  # a half passes through a float: keep NaNs away
            data = rng.integers(1, 100, 64, dtype=np.uint8)
        got = run(data, np.zeros(64, np.uint8), [3, width], 64)
        want = data.view(f"u{width}")[::-1]
        verdicts.append(first_difference(got.view(f"u{width}"), want, f"{width} bytes"))
    return all_of(verdicts)


CHECKS = [
    Check(("asc_copy_gm2ub_align", "asc_set_copy_pad_val"), "bursts and padding", _loads),
    Check(("asc_copy_ub2gm_align",), "bursts", _stores),
    *_atomics(),
    Check(("asc_load_dev", "asc_store_dev"), "1, 2, 4, 8 bytes", _scalar_access),
]
