"""A TileLang kernel for the Ascend 950, from Python to AscendC to (where it can run) a result.

    python examples/ascend_scale.py

Needs ``pip install -e '.[emu]'`` and no NPU: the source is generated on any CPU, and the
emulator runs it there.
"""

from __future__ import annotations

import tilelang
import torch
from tilelang.ascend import language as T
from tilelang.ascend.language import simd
from tvm.target import Target

import ascendkit
from ascendkit.platform import available

ROWS, WIDTH, CORES, LANES = 64, 512, 8, 64
"""LANES: float32 values in one 256-byte vector register."""
SHOWN = 16
"""Lines of the generated source that are printed."""


@tilelang.jit(target="ascend")
def scale(rows: int, width: int, cores: int):
    """y = 2 * x, a row at a time on each core; copies of one row overlap work on another."""

    @T.prim_func
    def kernel(
        x: T.Tensor[(rows, width), T.float32],
        y: T.Tensor[(rows, width), T.float32],
    ):
        with T.Kernel(cores) as core:
            tile = T.alloc_shared((width,), T.float32)
            doubled = T.alloc_shared((width,), T.float32)
            for i in T.serial(rows // cores):
                T.copy(x[core * (rows // cores) + i, 0:width], tile)
                with T.SimdVF():
                    for j in T.unroll(width // LANES, explicit=True):
                        value = simd.vld(tile[j * LANES])
                        simd.vsts(doubled[j * LANES], simd.vadd(value, value))
                T.copy(doubled, y[core * (rows // cores) + i, 0:width])

    return kernel


def source() -> str:
    """The AscendC text that TileLang generates; no CANN is involved."""
    target = Target({"kind": "ascend"})
    # Lowering looks for the target that is in force; without one it refuses.
    with target:
        program = scale.get_tir(ROWS, WIDTH, CORES)
        lowered = tilelang.lower(program, target=target, enable_device_compile=False)
    return str(lowered.kernel_source)


def shorten(line: str) -> str:
    """Generated lines run to 200 columns and more."""
    return line if len(line) <= 96 else line[:93] + "..."


def main() -> None:
    """Print the head of the generated source, then run it where that is possible."""
    text = source()
    start = text.find("__global__")
    head = text[text.rfind("\n", 0, start) + 1 :].splitlines()
    print(f"generated AscendC, {len(text.splitlines())} lines; the kernel begins:\n")
    print("\n".join(f"    {shorten(line)}" for line in head[:SHOWN]))
    state = available("emulator")
    if not state:
        print(f"\nnot run: {state.reason}")
        return
    x = torch.randn(ROWS, WIDTH)
    y = torch.empty_like(x)
    with ascendkit.use("emulator"):
        scale(ROWS, WIDTH, CORES)(x, y)
    same = torch.equal(y, 2 * x)
    print(f"\nrun on the emulated Ascend 950: {'equal to' if same else 'DIFFERS from'} 2 * x")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
