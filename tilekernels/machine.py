"""What the routing kernels share about the machines: core counts, alignments, compilation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ascendkit.op import Support

if TYPE_CHECKING:
    import torch

BLOCK_BYTES = 32
"""Grain of the Unified Buffer: rows of a tile start at multiples of it."""
WARP = 32


def vector_cores(tensor: torch.Tensor) -> int:
    """Vector cores of the NPU ``tensor`` lives on; of the emulated one for a CPU tensor."""
    if tensor.device.type == "cpu":
        from ascendkit.emulator.kernel import CORES

        return 2 * CORES
    import torch

    return 2 * int(torch.npu.get_device_properties(tensor.device).cube_core_num)


def padded(count: int, item_bytes: int = 4) -> int:
    """``count`` items rounded up to whole blocks of the Unified Buffer."""
    per_block = BLOCK_BYTES // item_bytes
    return -(-count // per_block) * per_block


MAX_WORDS = (1 << 31) - 1
"""Words of a flat tensor: their numbers are 32-bit integers in Ascend programs."""


def flat_words(count: int, what: str) -> Support:
    """Whether ``count`` int64, as two words each in a flat tensor, can be numbered."""
    if 2 * count > MAX_WORDS:
        return Support(False, f"{count} {what}: 32-bit numbers reach {MAX_WORDS // 2}")
    return Support(True)


def grain(row_bytes: int, *tensors: torch.Tensor) -> int:
    """Largest power of two up to 16 that divides a row and every tensor's address."""
    found = math.gcd(row_bytes, 16)
    for t in tensors:
        found = math.gcd(found, t.data_ptr())
    return found


def compile_cuda(program: Any, arch: str = "", **configs: bool) -> Any:
    """Compile a CUDA program; ``arch`` such as ``sm_90a`` compiles where no GPU is.

    Args:
        configs: names of :class:`tilelang.PassConfigKey`. Warp specialisation and guards around
            accesses are off: programs guard their own, and guards split vectors.
    """
    import tilelang

    keys = tilelang.PassConfigKey
    return tilelang.compile(
        program,
        target={"kind": "cuda", "arch": arch} if arch else "cuda",
        pass_configs={
            keys.TL_DISABLE_WARP_SPECIALIZED: True,
            keys.TL_DISABLE_SAFE_MEMORY_ACCESS: True,
            **{keys[name]: value for name, value in configs.items()},
        },
    )


def compile_ascend(program: Any, **configs: bool) -> Any:
    """Compile a program for the NPU, or for the emulator where that is active.

    Args:
        configs: names of :class:`tilelang.PassConfigKey`.
    """
    import tilelang

    keys = tilelang.PassConfigKey
    options = {keys[name]: value for name, value in configs.items()}
    return tilelang.compile(program, target="ascend", pass_configs=options)
