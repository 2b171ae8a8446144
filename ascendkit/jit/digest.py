"""The digests behind cache keys.

``digest`` is DeepJIT's two-lane FNV-1a, each part framed by its length; it names cache entries. Per
byte it costs a quarter of a microsecond in Python, so file contents (sources, headers, libraries)
are first reduced by ``content_digest``, BLAKE2b with the same framing, at memory speed.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Self

_MASK = (1 << 64) - 1
_SEEDS = (0xC6A4A7935BD1E995, 0xFF51AFD7ED558CCD)
_FACTORS = (0x100000001B3, 0x9E3779B97F4A7C15)


class Fnv:
    """Two-lane FNV-1a over length-framed parts; ``hexdigest`` gives 32 hexadecimal digits."""

    __slots__ = ("_lanes",)

    def __init__(self) -> None:
        self._lanes = _SEEDS

    def update(self, part: str | bytes) -> Self:
        """Feed the part's length (8 bytes, little-endian), then the part; text counts as UTF-8.

        Text from the system that is not UTF-8 counts as the bytes it stands for.
        """
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        first, second = self._lanes
        first_factor, second_factor = _FACTORS
        for byte in len(data).to_bytes(8, "little") + data:
            first = (first ^ byte) * first_factor & _MASK
            second = (second ^ byte) * second_factor & _MASK
        self._lanes = (first, second)
        return self

    def copy(self) -> Fnv:
        """An independent continuation of the same prefix."""
        twin = Fnv()
        twin._lanes = self._lanes
        return twin

    def hexdigest(self) -> str:
        """Both lanes, each through a finalising mixer."""
        return "".join(f"{_mix(lane):016x}" for lane in self._lanes)


def digest(*parts: str | bytes) -> str:
    """The FNV digest of ``parts`` in order; ``("ab", "c")`` and ``("a", "bc")`` differ."""
    state = Fnv()
    for part in parts:
        state.update(part)
    return state.hexdigest()


def content_digest(*parts: bytes) -> str:
    """BLAKE2b-128 of length-framed ``parts``, as 32 hexadecimal digits."""
    state = blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def _mix(lane: int) -> int:
    lane = (lane ^ lane >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    lane = (lane ^ lane >> 27) * 0x94D049BB133111EB & _MASK
    return lane ^ lane >> 31
