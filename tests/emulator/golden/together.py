"""Pipes, cores and blocks that wait for each other, as issued and in adversarial orders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.emulator.golden.cube_run import small
from tests.emulator.golden.program import Check, all_of, compiled, first_difference
from tests.emulator.harness import launch
from tests.emulator.oracle import cube as oracle
from tests.emulator.oracle.types import LANES

ORDER = (Path(__file__).parent / "order.asc").read_text()
MIXED = (Path(__file__).parent / "mixed.asc").read_text()
TILES = 7
SEEDS = (0, 1, 2, 3, 4, 5)
"""0 is the order of issue."""


def _pipes(mode: int, what: str):
    def run(rng: np.random.Generator, wrong: int) -> str:
        verdicts = []
        for seed in SEEDS:
            data = rng.integers(-999, 999, TILES * 64).astype(np.float32)
            out = np.zeros_like(data)
            launch(compiled(ORDER), [data, out, mode, TILES], trace=1, replay=seed)
            verdicts.append(first_difference(out, 2 * data + 1, f"{what}, order {seed}"))
        return all_of(verdicts)

    return run


def _blocks(rng: np.random.Generator, wrong: int) -> str:
    out = np.zeros(10, np.uint32)
    launch(compiled(ORDER), [out, out, 3, 5], grid=5, trace=1)
    wrote = 100 + np.arange(5, dtype=np.uint32)
    return first_difference(out, np.concatenate([wrote, wrote[::-1]]), "all blocks")


def _identity(rng: np.random.Generator, wrong: int) -> str:
    out = np.zeros(10, np.uint32)
    launch(compiled(ORDER), [out, out, 4, wrong], grid=5, trace=1)
    want = np.stack([np.arange(5), np.full(5, 5)], axis=1).reshape(-1)
    return first_difference(out, want.astype(np.uint32), "block_idx, gridDim")


def _mixed(mode: int, want: dict[int, int], what: str):
    """The words of each of three blocks, by number."""

    def run(rng: np.random.Generator, wrong: int) -> str:
        verdicts = []
        for seed in SEEDS[:3]:
            out = np.zeros((3, 16), np.uint32)
            nothing, p = np.zeros(32, np.uint8), np.zeros(64, np.int32)
            p[0] = mode
            launch(compiled(MIXED), [nothing, nothing, out, p], grid=3, trace=1, replay=seed)
            words = np.zeros((3, 16), np.uint32)
            words[:, list(want)] = list(want.values())
            verdicts.append(first_difference(out, words, f"{what}, order {seed}"))
        return all_of(verdicts)

    return run


def _staged(codes: np.ndarray, skip: int, rng: np.random.Generator) -> np.ndarray:
    """A half tile's column groups with ``skip`` foreign blocks of 32 bytes after each."""
    groups = oracle.fractals(codes, "f16").reshape(codes.shape[1] // 16, -1)
    noise = rng.integers(0, 256, (len(groups), 32 * skip), dtype=np.uint8)
    return np.concatenate([groups, noise], axis=1).reshape(-1)


def _product(split: int, target: int = 0):
    """A x b^T, operands through both unified buffers; the result into one, or split over both."""

    def run(rng: np.random.Generator, wrong: int) -> str:
        m, k, n = 32, 48, 64
        verdicts = []
        for seed in SEEDS[:3]:
            a, b = small("f16", rng, (m, k)), small("f16", rng, (n, k))
            first, second = _staged(a, 1, rng), _staged(b, 0, rng)
            p = np.zeros(64, np.int32)
            p[0] = 1
            p[8:13] = first.nbytes, k // 16, m, 1, 16  # a gap of 16 rows in L1: 3 fractals a group
            p[16:21] = second.nbytes, k // 16, n, 0, 0
            p[24:27] = m // 16, k // 16, 3
            p[28], p[30] = n // 16, n // 16
            p[32:35] = m, k, n
            rows, columns = (m // 2, n) if split == 1 else (m, n // 2) if split == 2 else (m, n)
            p[36:40] = columns, m, target, split
            p[5] = rows * columns * 4
            out = np.zeros((2, rows, columns), np.float32)
            launch(compiled(MIXED), [first, second, out, p], trace=1, replay=seed)
            lane = LANES["f16"]
            whole = (lane.values(a) @ lane.values(b).T).astype(np.float32)
            if split == 0:
                verdicts.append(first_difference(out[target], whole, f"core {target}, {seed}"))
            else:
                want = np.stack(np.split(whole, 2, axis=split - 1))
                verdicts.append(first_difference(out, want, f"split {split}, order {seed}"))
        return all_of(verdicts)

    return run


def _products() -> Iterator[Check]:
    names = (
        "asc_copy_ub2l1",
        "asc_copy_l0c2ub",
        "asc_get_sub_block_id",
        "asc_sync_intra_arrive",
        "asc_sync_intra_wait",
    )
    for about, split, target in (
        ("to core 0", 0, 0),
        ("to core 1", 0, 1),
        ("rows split", 1, 0),
        ("columns split", 2, 0),
    ):
        yield Check(names, about, _product(split, target))


CHECKS = [
    Check(("asc_sync_notify", "asc_sync_wait"), "two buffers a side", _pipes(0, "events")),
    Check(("asc_lock", "asc_unlock"), "two buffers a side", _pipes(1, "locks")),
    Check(("asc_sync", "asc_sync_pipe"), "one buffer a side", _pipes(2, "barriers")),
    Check(("asc_sync_inter_arrive", "asc_sync_inter_wait"), "5 blocks", _blocks),
    Check(("block_idx", "gridDim"), "5 blocks", _identity, hooked=False),
    Check(
        ("ASC_IS_AIC", "ASC_IS_AIV"),
        "3 blocks",
        _mixed(0, {0: 1, 1: 2, 2: 3}, "identity"),
    ),
    *_products(),
    Check(
        ("asc_sync_block_arrive", "asc_sync_block_wait"),
        "there and back",
        _mixed(2, {0: 41, 1: 41, 2: 51, 3: 92}, "block"),
    ),
    Check(
        ("asc_sync_subblock_arrive", "asc_sync_subblock_wait"),
        "each other",
        _mixed(3, {0: 7, 1: 8, 2: 108, 3: 107}, "subblock"),
    ),
]
