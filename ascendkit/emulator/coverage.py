"""Elements of outputs that a launch was to write and did not.

Which arguments are outputs nobody says; but a tensor that had no value before the launch, and has
been written in part, is one. What the kernel allocated itself (``out_idx``) must be written whole:
AK-COVERAGE-001. A tensor of ``torch.empty`` may be larger than needed on purpose: only when all the
slices of one dimension are full or untouched, and most are full, are the untouched ones named, and
as a note (AK-COVERAGE-002). Tensors that held values are never judged: updating a part is common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ascendkit.emulator import fresh
from ascendkit.emulator.verdicts import RawFinding, finding


def unwritten(kernel: str, memory: Any, written: Sequence[Any]) -> list[RawFinding]:
    """Findings about the tensors of ``memory`` (guards.Guarded); ``written``: a mask of bytes for
    each region."""
    found = []
    for name, tensor, empty, touched in memory.undefined_outputs(written):
        if not empty.any():
            continue
        allocated = fresh.allocated(tensor)
        if not allocated and not touched:
            continue
        place = _slices(empty, strict=not allocated)
        if place is None:
            if not allocated:
                continue
            place = f"{name}: {int((~empty).sum())} of {empty.size} elements written"
        else:
            place = name + place
        first = int(empty.argmax())
        code = "AK-COVERAGE-001" if allocated else "AK-COVERAGE-002"
        offset = _offset(tensor, first)
        found.append(
            finding(
                code,
                kernel,
                base=memory.copy(tensor.data_ptr() + offset),
                bytes=tensor.element_size(),
                count=int(empty.sum()),
                detail=f"{place}; the first without a value is byte {offset}",
            )
        )
    return found


def _slices(empty: Any, *, strict: bool) -> str | None:
    """The slices of one dimension that hold every element without a value: ``[:, 16]: 0 of 512
    elements written``. ``strict``: most slices must be full."""
    for d in range(empty.ndim):
        if empty.shape[d] < 2:
            continue
        rest = tuple(i for i in range(empty.ndim) if i != d)
        count = empty.sum(axis=rest) if rest else empty.astype(int)
        size = empty.size // empty.shape[d]
        bad = count.nonzero()[0]
        if not all(count[i] == size for i in bad) or len(bad) == empty.shape[d]:
            continue
        if strict and 2 * len(bad) > empty.shape[d]:
            continue
        runs = _runs([int(i) for i in bad])
        index = ", ".join([":"] * d + [", ".join(runs[:4]) + (", ..." if len(runs) > 4 else "")])
        return f"[{index}]: 0 of {size * len(bad)} elements written"
    return None


def _runs(numbers: Sequence[int]) -> list[str]:
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][1] == n:
            runs[-1][1] = n + 1
        else:
            runs.append([n, n + 1])
    return [str(a) if b == a + 1 else f"{a}:{b}" for a, b in runs]


def _offset(tensor: Any, number: int) -> int:
    """Bytes from the start of ``tensor`` to element ``number`` in row-major order."""
    at = 0
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride())):
        number, index = divmod(number, size)
        at += index * stride
    return int(at) * int(tensor.element_size())
