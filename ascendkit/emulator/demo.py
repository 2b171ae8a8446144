"""``python -m ascendkit.emulator demo``: two kernels, and what a mistake looks like."""

from __future__ import annotations

import time


def main() -> int:
    """Run the samples; returns the exit code."""
    import torch

    from ascendkit.emulator import EmulatorError, active, run, samples

    torch.manual_seed(0)
    with active():
        start = time.perf_counter()
        add = samples.add(8192)
        a, b = torch.randn(2, 8192)
        same = torch.equal(add(a, b), a + b)
        print(f"vector add, 8 blocks: bit-equal {same}, {_since(start)}")
        start = time.perf_counter()
        matmul = samples.matmul(256, 256, 256)
        x, y = torch.randn(2, 256, 256).bfloat16()
        error = (matmul(x, y).double() - x.double() @ y.double().T).abs().max().item()
        print(f"matrix product, 4 cube cores: largest error {error:.1e}, {_since(start)}")
        broken = _without_first_signal(add.kernel_source)
    try:
        run(broken, a, b, torch.zeros(8192), grid=8, timeout_s=10)
        print("a missing signal went unnoticed")
        return 1
    except EmulatorError as failure:
        print(f"\nthe same kernel, its first signal deleted:\n{failure}")
    return 0 if same and error < 1e-3 else 1


def _without_first_signal(source: str) -> str:
    """The source with its first signal removed: somebody now waits for ever."""
    lines = source.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "asc_sync_notify(" in line)
    return "".join(lines[:at] + lines[at + 1 :])


def _since(start: float) -> str:
    return f"{time.perf_counter() - start:.2f} s with lowering and compiling"
