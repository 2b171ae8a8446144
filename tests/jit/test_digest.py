"""The two-lane FNV digest: vectors, framing, and statistics."""

from __future__ import annotations

import random

import pytest

from ascendkit.jit.digest import Fnv, content_digest, digest

VECTORS = {
    (): "ddd805b8cbc69b1eab0665cdad96ab45",
    ("",): "601991819c51b6b40cce57df1139bba4",
    ("a",): "071877703434148cbfd5816193c030f4",
    ("abc",): "d38cb16bf40d72b8c7f98d40271fe40a",
    ("ab", "c"): "ade4f2da7faaca1b6b7735b33fffa69f",
    ("a", "bc"): "fc1aedb4107b5fa7d1d5dcbfaaa19390",
}


@pytest.mark.parametrize(("parts", "expected"), VECTORS.items())
def test_vectors(parts: tuple[str, ...], expected: str) -> None:
    assert digest(*parts) == expected


@pytest.mark.parametrize("function", [digest, content_digest])
def test_framing(function) -> None:
    cases = [(), (b"",), (b"", b""), (b"\0",), (b"\0", b""), (b"", b"\0"), (b"a\0b",), (b"a", b"b")]
    cases += [(b"ab", b""), (b"", b"ab"), (b"ab",), (b"\x02" + bytes(7) + b"ab",)]
    assert len({function(*parts) for parts in cases}) == len(cases)


def test_text_is_utf8() -> None:
    assert digest("编译") == digest("编译".encode())


def test_copies_continue_apart() -> None:
    stem = Fnv().update("stem")
    before = stem.hexdigest()
    left, right = stem.copy().update("left"), stem.copy().update("right")
    assert stem.hexdigest() == before
    assert left.hexdigest() == digest("stem", "left")
    assert right.hexdigest() == digest("stem", "right")


def test_a_million_short_inputs_do_not_collide() -> None:
    assert len({digest(index.to_bytes(4, "little")) for index in range(1_000_000)}) == 1_000_000


def test_avalanche(seed: int) -> None:
    """Flipping one input bit flips half of the output: in total, in each lane, at each place."""
    draw = random.Random(seed)
    trials = 4000
    flipped = [0] * 128
    lanes = 0
    for _ in range(trials):
        data = bytearray(draw.randbytes(draw.randrange(1, 48)))
        before = int(digest(bytes(data)), 16)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        after = int(digest(bytes(data)), 16)
        for place in range(128):
            flipped[place] += (before ^ after) >> place & 1
        lanes += ((after >> 64) ^ (after & (1 << 64) - 1)).bit_count()
    assert 60 <= sum(flipped) / trials <= 68
    assert 28 <= lanes / trials <= 36
    assert all(0.35 <= count / trials <= 0.65 for count in flipped)
