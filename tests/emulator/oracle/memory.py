"""Loads and stores between the unified buffer and registers. Memory is bytes, one row a case."""

from __future__ import annotations

import numpy as np

from tests.emulator.oracle.types import REGISTER, Lane, active

BLOCK = 32


def elements(memory: np.ndarray, lane: Lane, start: int, count: int) -> np.ndarray:
    """``count`` elements from byte ``start`` of every row."""
    part = memory[:, start : start + count * lane.bytes]
    return np.ascontiguousarray(part).view(lane.code)


def load(dist: str, memory: np.ndarray, lane: Lane, start: int) -> np.ndarray:
    """A register of ``lane`` loaded from byte ``start`` under a distribution."""
    n, rows = lane.count, len(memory)
    if dist == "":
        return elements(memory, lane, start, n)
    if dist == "brc_elem":
        return np.repeat(elements(memory, lane, start, 1), n, axis=1)
    if dist == "upsample":
        return np.repeat(elements(memory, lane, start, n // 2), 2, axis=1)
    if dist == "downsample":
        return elements(memory, lane, start, 2 * n)[:, ::2]
    if dist in ("unpack", "unpack4"):
        ratio = 2 if dist == "unpack" else 4
        result = np.zeros((rows, n), lane.code)
        result[:, ::ratio] = elements(memory, lane, start, n // ratio)
        return result
    if dist == "brc_datablock":
        return np.tile(elements(memory, lane, start, BLOCK // lane.bytes), (1, REGISTER // BLOCK))
    assert dist == "brc_elem2datablock", dist
    return np.repeat(elements(memory, lane, start, 8), BLOCK // lane.bytes, axis=1)


def load_bits(dist: str, memory: np.ndarray, start: int) -> np.ndarray:
    """A predicate: 32 bytes as they are, 16 with each bit twice, or every second bit of 64."""
    count = {"": 32, "upsample": 16, "downsample": 64}[dist]
    bits = np.unpackbits(memory[:, start : start + count], axis=1, bitorder="little")
    if dist == "upsample":
        bits = np.repeat(bits, 2, axis=1)
    return (bits[:, ::2] if dist == "downsample" else bits).astype(bool)


def store(
    memory: np.ndarray, lane: Lane, start: int, codes: np.ndarray, on: np.ndarray
) -> np.ndarray:
    """Memory after writing ``codes`` densely from byte ``start`` where ``on``."""
    result = memory.copy()
    stop = start + codes.shape[1] * lane.bytes
    old = np.ascontiguousarray(result[:, start:stop]).view(lane.code)
    result[:, start:stop] = np.ascontiguousarray(np.where(on, codes, old)).view(np.uint8)
    return result


def store_blocks(
    memory: np.ndarray, lane: Lane, start: int, codes: np.ndarray, mask: np.ndarray, stride: int
) -> np.ndarray:
    """Eight blocks of 32 bytes, ``stride`` blocks from start to start."""
    result, per_block = memory, BLOCK // lane.bytes
    on = active(mask, lane)
    for b in range(REGISTER // BLOCK):
        lanes = slice(b * per_block, (b + 1) * per_block)
        result = store(result, lane, start + b * stride * BLOCK, codes[:, lanes], on[:, lanes])
    return result


def gather(memory: np.ndarray, lane: Lane, index: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Element ``index[i]`` of the row for lane i; zero where inactive."""
    source = elements(memory, lane, 0, memory.shape[1] // lane.bytes)
    safe = np.where(on, index, 0).astype(np.int64)
    return np.where(on, np.take_along_axis(source, safe, axis=1), 0).astype(lane.code)


def scatter(
    memory: np.ndarray, lane: Lane, index: np.ndarray, codes: np.ndarray, on: np.ndarray
) -> np.ndarray:
    """Element ``index[i]`` becomes lane i, in order: the highest active lane wins (inferred)."""
    result = memory.copy()
    for row, at, values, active_lanes in zip(result, index, codes, on):
        line = row.view(lane.code)
        for i in np.flatnonzero(active_lanes):
            line[int(at[i])] = values[i]
    return result
