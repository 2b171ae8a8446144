"""What hand-written helpers call: squeezing stores, their count, shared words, the sort."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.emulator.golden.program import Check, all_of, compiled, first_difference
from tests.emulator.harness import launch
from tests.emulator.oracle import helpers as oracle

TEXT = (Path(__file__).parent / "helpers.asc").read_text()
SHARED = (Path(__file__).parent / "shared.asc").read_text()


def run(
    data: np.ndarray, out: np.ndarray, parameters: tuple[int, ...], loops: tuple[int, int] = (1, 1)
) -> tuple[np.ndarray, np.ndarray]:
    """``out`` after the program, and its three counts: of the register, stored, stored plus one."""
    result = np.concatenate([out, np.zeros(16, np.uint8)])
    mode, *rest = parameters
    words = np.zeros(9, np.int32)
    words[: 3 + len(rest)] = mode, data.nbytes, out.nbytes, *rest
    words[7:] = loops
    launch(compiled(TEXT), [data.view(np.uint8).copy(), result, words], trace=1)
    tail = result[-16:]
    counts = np.concatenate([tail[:8].view(np.uint64), tail[8:].view(np.uint32)])
    return result[:-16], counts.astype(np.int64)


def kept(rng: np.random.Generator, wrong: int) -> str:
    """Every width, start and density; with the end that finalize writes and without it."""
    verdicts = []
    for width in (1, 2, 4):
        for start, rounds, share, finish in (
            (0, 3, 0.5, 1),
            (5, 4, 0.05, 1),
            (11, 5, 0.9, 1),
            (3, 2, 1.0, 1),
            (7, 3, 0.0, 1),
            (1, 4, 0.3, 0),
        ):
            count = rounds * 256 // width
            codes = rng.integers(1, 1 << 8 * width, count, dtype=np.uint64).astype(f"u{width}")
            on = rng.random(count) < share
            before = rng.integers(0, 256, 2048, dtype=np.uint8)
            data = np.concatenate([codes, on.astype(codes.dtype)])
            got, counts = run(data, before, (width, start * width, rounds, finish))
            want, size = oracle.squeezed(before, start * width, codes, on, bool(finish))
            about = f"{width} bytes, from element {start}, {share:.0%} kept"
            verdicts.append(first_difference(got, want, about))
            verdicts.append(first_difference(counts, np.array([size, size, size + 1]), about))
    return all_of(verdicts)


def sorted_(rng: np.random.Generator, wrong: int) -> str:
    """Distinct, repeated and extreme values; elements past the count stay."""
    verdicts = []
    for capacity, count, spread in (
        (512, 512, 1 << 31),
        (512, 77, 5),
        (8, 1, 9),
        (4096, 4000, 999),
    ):
        values = rng.integers(-spread, spread, capacity).astype(np.int32)
        before = rng.integers(0, 256, 8 * capacity, dtype=np.uint8)
        room = 512 + 11 * count
        got, _ = run(values, before, (5, 4 * capacity, capacity, room, count))
        want = before.copy().view(np.uint32).reshape(2, capacity)
        ordered, want[1, :count] = oracle.sort(values[:count])
        want[0, :count] = ordered.view(np.uint32)
        verdicts.append(first_difference(got.view(np.uint32).reshape(2, -1), want, f"{count}"))
    return all_of(verdicts)


def _loops(rng: np.random.Generator, sizes: tuple[int, int]) -> str:
    """One pass leaves copies as they are; the kernel asks for more when it is to fail."""
    out = rng.integers(0, 256, 64, dtype=np.uint8)
    got, _ = run(np.zeros(512, np.uint8), out, (0,), sizes)
    return first_difference(got, out, "bytes that pass through")


def loads(rng: np.random.Generator, wrong: int) -> str:
    """Into the unified buffer."""
    return _loops(rng, (1 + wrong, 1))


def stores(rng: np.random.Generator, wrong: int) -> str:
    """Out of it."""
    return _loops(rng, (1, 1 + wrong))


def shared(rng: np.random.Generator, wrong: int) -> str:
    """Words of two cores, read as pairs by all three; the last pair ends the buffer."""
    verdicts = []
    for slots, first in ((8, 0), (4, 380)):
        votes = rng.integers(0, 1 << 32, (3, 2, slots), dtype=np.uint64).astype(np.uint32)
        for seed in (0, 1, 2):
            out = np.zeros((3, 3, slots), np.uint64)
            launch(compiled(SHARED), [votes, out, slots, first], grid=3, trace=1, replay=seed)
            pair = votes[:, 0] | votes[:, 1].astype(np.uint64) << np.uint64(32)
            want = np.repeat(pair[:, None], 3, axis=1)
            verdicts.append(first_difference(out, want, f"pairs from {first}, order {seed}"))
    return all_of(verdicts)


_STORE = "asc_squeeze_and_storeunalign"
CHECKS = [
    Check(
        (f"{_STORE}_init", _STORE, f"{_STORE}_finalize", "sprsts", "asc_get_squeeze_status"),
        "1, 2, 4 bytes",
        kept,
    ),
    Check(("Sort",), "int32", sorted_),
    Check(("asc_set_gm2ub_loop_size",), "one pass", loads, hooked=False),
    Check(("asc_set_ub2gm_loop_size",), "one pass", stores, hooked=False),
    Check(("GetSsbufBaseAddr",), "words and pairs", shared),
]
_ONE_VALUE = {3: "one value, no lanes", 4: "one value, no lanes"}
UNSEEN = dict.fromkeys((f"{_STORE}_init", "sprsts", "asc_get_squeeze_status"), _ONE_VALUE)
