"""Copies between memories, as bytes, and the arithmetic of atomic writes."""

from __future__ import annotations

import numpy as np

from tests.emulator.oracle.lanes import BINARY
from tests.emulator.oracle.types import Lane


def bursts(
    dst: np.ndarray,
    src: np.ndarray,
    *,
    count: int,
    size: int,
    dst_start: int,
    src_start: int,
    dst_stride: int,
    src_stride: int,
) -> np.ndarray:
    """``count`` runs of ``size`` bytes; strides in bytes, from start to start."""
    result = dst.copy()
    for b in range(count):
        at, of = dst_start + b * dst_stride, src_start + b * src_stride
        result[at : at + size] = src[of : of + size]
    return result


def padded(
    dst: np.ndarray,
    src: np.ndarray,
    *,
    pad: np.ndarray,
    left: int,
    right: int,
    count: int,
    size: int,
    dst_start: int,
    dst_stride: int,
    src_stride: int,
) -> np.ndarray:
    """Each run is preceded by ``left`` and followed by ``right`` copies of the pad element."""
    result = dst.copy()
    element = pad.view(np.uint8)
    for b in range(count):
        run = src[b * src_stride : b * src_stride + size]
        whole = np.concatenate([np.tile(element, left), run, np.tile(element, right)])
        at = dst_start + b * dst_stride
        result[at : at + len(whole)] = whole
    return result


def combine(op: str, lane: Lane, memory: np.ndarray, written: np.ndarray) -> np.ndarray:
    """What an atomic write leaves: memory op written, rounded once."""
    return lane.codes(BINARY[op](lane.values(memory), lane.values(written)))
