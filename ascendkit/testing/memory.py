"""Tensors placed on purpose: moved with their strides, poisoned, and between guard zones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

GUARD_BYTES = 4096
"""Each side; a multiple of every alignment allocators give, so the tensor keeps its own."""
GUARD = 0xC3
POISONS = (0xFF, 0xA5)
"""Byte patterns of unwritten memory. The first is NaN in every float format and -1 in integers; no
value equals both, so what still reads as poison after a call with each was never written."""


def copied(args: Any, device: str | None = None) -> Any:
    """Copies of tensors (in tuples and lists too), strides and padding kept; the rest as it is."""
    import torch

    if isinstance(args, (tuple, list)):
        return type(args)(copied(a, device) for a in args)
    if not isinstance(args, torch.Tensor):
        return args
    t = args.detach()
    flat = t.as_strided((_extent(t),), (1,), t.storage_offset())
    out = flat.to(device or t.device, copy=True).as_strided(t.shape, t.stride(), 0)
    return out.requires_grad_(args.requires_grad)


def tensors(args: Any) -> list[torch.Tensor]:
    """All tensors of nested tuples and lists, in order."""
    import torch

    if isinstance(args, torch.Tensor):
        return [args]
    return [t for a in args for t in tensors(a)] if isinstance(args, (tuple, list)) else []


class Guarded:
    """A tensor laid out like another, with guard zones around it and in the gaps of its strides."""

    def __init__(self, like: torch.Tensor) -> None:
        import torch

        size = _extent(like) * like.element_size()
        self._bytes = torch.empty(size + 2 * GUARD_BYTES, dtype=torch.uint8, device=like.device)
        body = self._bytes[GUARD_BYTES : GUARD_BYTES + size]
        self.tensor = body.view(like.dtype).as_strided(like.shape, like.stride())
        owned = torch.zeros(self._bytes.shape, dtype=torch.bool, device=like.device)
        wide = owned[GUARD_BYTES : GUARD_BYTES + size].view(-1, like.element_size())
        for column in range(like.element_size()):
            offset = wide.storage_offset() + column
            strides = [s * like.element_size() for s in like.stride()]
            wide.as_strided(like.shape, strides, offset).fill_(True)
        self._owned = owned

    def poison(self, pattern: int) -> None:
        """Fill the tensor with a byte pattern and renew the guards."""
        self._bytes.fill_(GUARD).masked_fill_(self._owned, pattern)

    def unwritten(self, pattern: int) -> torch.Tensor:
        """Elements whose bytes all still read as ``pattern``."""
        import torch

        from ascendkit.testing.bits import as_bits

        wanted = torch.full((self.tensor.element_size(),), pattern, dtype=torch.uint8)
        word = as_bits(wanted.view(self.tensor.dtype)).to(self.tensor.device)
        return as_bits(self.tensor) == word

    def breach(self) -> str:
        """Where a guard byte changed: a sentence, empty when none did."""
        hit = ((self._bytes != GUARD) & ~self._owned).nonzero()
        if not len(hit):
            return ""
        at = int(hit[0]) - GUARD_BYTES
        size = len(self._bytes) - 2 * GUARD_BYTES
        if at < 0:
            where = f"at byte {at} before the output"
        elif at >= size:
            where = f"at byte {at - size} behind the output"
        else:
            where = f"in a gap of the output's strides, byte {at}"
        return f"{len(hit)} bytes written outside the output, the first {where}"


def _extent(t: torch.Tensor) -> int:
    """Elements from the first to the last one a strided tensor reaches."""
    if t.numel() == 0:
        return 0
    return 1 + sum(int(s) * (int(n) - 1) for s, n in zip(t.stride(), t.shape))
