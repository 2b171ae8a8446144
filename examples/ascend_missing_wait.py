"""What the emulator says of a kernel that lacks one wait.

    python examples/ascend_missing_wait.py

The kernel is that of ascend_scale.py. One wait for a load is dropped as it runs; the source stays
as it is. The finding names both Python lines.
"""

from __future__ import annotations

import torch
from ascend_scale import CORES, ROWS, WIDTH, scale

from ascendkit.emulator import check
from ascendkit.emulator.lowered import LoweredKernel, ascend_target
from ascendkit.emulator.mutants import Mutant
from ascendkit.platform import available


def main() -> None:
    """Check the kernel as it is, then without the first wait of pipe V for a load."""
    state = available("emulator")
    if not state:
        print(f"not run: {state.reason}")
        return
    with ascend_target():
        kernel = LoweredKernel(scale.get_tir(ROWS, WIDTH, CORES))
    lines = kernel.kernel_source.splitlines()
    line = next(i for i, s in enumerate(lines, 1) if "asc_sync_wait(PIPE_MTE2, PIPE_V" in s)
    x, y = torch.randn(ROWS, WIDTH), torch.empty(ROWS, WIDTH)
    right = check(kernel, x, y)
    print(f"as written: {len(right.findings)} findings")
    print(f"\nwithout line {line} of the generated source, {lines[line - 1].strip()}\n")
    wrong = check(kernel, x, y, mutate=[Mutant(line, "asc_sync_wait", "drop", "MTE2", "V")])
    races = [f for f in wrong.findings if f.code == "AK-RACE-001"]
    print(f"{len(races)} findings of AK-RACE-001; the first:\n")
    print(*races[:1])
    if right.findings or not races:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
