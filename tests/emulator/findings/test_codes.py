"""The list of codes and the code that emits them name the same codes."""

import re
from pathlib import Path

import pytest

import ascendkit.emulator
from ascendkit.emulator.findings.codes import codes

pytestmark = pytest.mark.emu
HERE = Path(ascendkit.emulator.__file__).parent
SUFFIXES = {".cc", ".h", ".py"}


def emitted():
    files = [p for p in HERE.rglob("*") if p.suffix in SUFFIXES and p.is_file()]
    text = "\n".join(p.read_text(encoding="utf-8") for p in files)
    return set(re.findall(r"AK-[A-Z]+-\d{3}", text))


def test_every_code_that_is_emitted_is_listed_and_the_other_way_round():
    found = emitted()
    assert len(found) > 50  # a pattern that finds nothing would pass otherwise
    assert sorted(found - set(codes())) == [], "not in codes.yaml"
    assert sorted(set(codes()) - found) == [], "listed, and nobody emits them"
