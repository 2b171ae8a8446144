"""The ELF reader, on what compilers make and on noise."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ascendkit.jit.elf import EXECUTABLE, RELOCATABLE, SHARED, Elf

MARK = '__attribute__((used, section("mine")))'
SOURCE = f"""
extern "C" {MARK} void one() {{}}
extern "C" {MARK} int two(int x) {{ return x; }}
extern "C" int elsewhere() {{ return 1; }}
{MARK} static void hidden() {{}}
extern "C" {{ __attribute__((section("mydata"))) int not_a_function = 3; }}
extern "C" void undefined();
void* user = reinterpret_cast<void*>(&undefined);
"""


def build(home: Path, *flags: str, text: str = SOURCE) -> bytes:
    (home / "x.cpp").write_text(text)
    command = ["g++", *flags, str(home / "x.cpp"), "-o", str(home / "x")]
    subprocess.run(command, check=True, capture_output=True)
    return (home / "x").read_bytes()


def test_shared_objects(home: Path) -> None:
    elf = Elf(build(home, "-shared", "-fPIC"))
    assert elf.type == SHARED
    assert elf.functions("mine") == ["one", "two"]
    assert elf.functions("none") == []
    assert elf.functions("mydata") == []


def test_stripped_objects(home: Path) -> None:
    assert Elf(build(home, "-shared", "-fPIC", "-s")).functions("mine") == ["one", "two"]


def test_relocatable_objects(home: Path) -> None:
    elf = Elf(build(home, "-c"))
    assert elf.type == RELOCATABLE
    assert elf.functions("mine") == ["_ZL6hiddenv", "one", "two"]


def test_executables(home: Path) -> None:
    elf = Elf(Path(sys.executable).resolve().read_bytes())
    assert elf.type in (SHARED, EXECUTABLE)


def test_narrow_big_endian() -> None:
    """A hand-made 32-bit big-endian image with one function in one section."""
    names = b"\0mine\0.dynsym\0.dynstr\0"
    strings = b"\0f\0"
    symbols = struct.pack(">IIIBBH", 0, 0, 0, 0, 0, 0) + struct.pack(">IIIBBH", 1, 0, 0, 18, 0, 1)
    parts = [names, strings, symbols]
    starts = [52, 52 + len(names), 52 + len(names) + len(strings)]
    table = starts[2] + len(symbols)
    row = struct.Struct(">10I")
    sections = [
        row.pack(*[0] * 10),
        row.pack(1, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        row.pack(6, 11, 0, 0, starts[2], len(symbols), 3, 0, 0, 16),
        row.pack(14, 3, 0, 0, starts[1], len(strings), 0, 0, 0, 0),
        row.pack(0, 3, 0, 0, starts[0], len(names), 0, 0, 0, 0),
    ]
    head = b"\x7fELF\x01\x02\x01" + bytes(9)
    head += struct.pack(">HHIIIIIHHHHHH", 3, 8, 1, 0, 0, table, 0, 52, 0, 0, 40, 5, 4)
    assert Elf(head + b"".join(parts) + b"".join(sections)).functions("mine") == ["f"]


@pytest.mark.parametrize(
    "image", [b"", b"\x7fELF", b"MZ" + bytes(100), b"\x7fELF\x07\x09" + bytes(60)]
)
def test_not_elf(image: bytes) -> None:
    with pytest.raises(ValueError, match=r"ELF"):
        Elf(image)


def test_noise_gives_errors_not_crashes(home: Path, seed: int) -> None:
    draw = random.Random(seed)
    good = build(home, "-shared", "-fPIC", "-s")
    for _ in range(1500):
        image = bytearray(good[: draw.randrange(len(good) + 1)] if draw.random() < 0.5 else good)
        for _ in range(draw.randrange(1, 8)):
            if image:
                place = draw.randrange(min(len(image), 64) if draw.random() < 0.7 else len(image))
                image[place] = draw.randrange(256)
        try:
            names = Elf(bytes(image)).functions("mine")
        except ValueError:
            continue
        assert isinstance(names, list)
