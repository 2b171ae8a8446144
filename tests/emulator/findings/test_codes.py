"""The list of codes and the code that emits them name the same codes."""

import ast
import re
from pathlib import Path

import pytest

import ascendkit.emulator
from ascendkit.emulator import pages
from ascendkit.emulator.findings.codes import codes
from ascendkit.emulator.findings.reference import FAMILIES

pytestmark = pytest.mark.emu
HERE = Path(ascendkit.emulator.__file__).parent
SUFFIXES = {".cc", ".h", ".py"}


def spoken(path):
    """The text of a file that can reach a user: no comments and no docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return re.sub(r"//.*", "", text)
    nodes = list(ast.walk(ast.parse(text)))
    prose = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    constants = (n for n in nodes if isinstance(n, ast.Constant) and id(n) not in prose)
    return "\n".join(str(n.value) for n in constants)


def emitted():
    files = [p for p in HERE.rglob("*") if p.suffix in SUFFIXES and p.is_file()]
    return set(re.findall(r"AK-[A-Z]+-\d{3}", "\n".join(map(spoken, files))))


def test_every_code_that_is_emitted_is_listed_and_the_other_way_round():
    found = emitted()
    assert len(found) > 50  # a pattern that finds nothing would pass otherwise
    assert sorted(found - set(codes())) == [], "not in codes.yaml"
    assert sorted(set(codes()) - found) == [], "listed, and nobody emits them"


def test_every_code_has_its_page_and_no_page_is_left_over():
    root = HERE.parent.parent
    written = {p for p in pages.files() if p.parent.name == "findings"}
    assert written == set((root / "docs" / "findings").iterdir())
    assert {root / c.page for c in codes().values()} < written
    assert {c.split("-")[1] for c in codes()} == set(FAMILIES)
