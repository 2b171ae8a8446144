"""The cured examples: what ``cures.yaml`` writes instead of what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from ascendkit.emulator.findings.codes import Code
from ascendkit.errors import bad_value


@cache
def cures() -> dict[str, tuple[tuple[str, str], ...]]:
    """Replacements by code."""
    import yaml

    text = Path(__file__).with_name("cures.yaml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    return {code: tuple((old, new) for old, new in pairs) for code, pairs in found.items()}


def cured(code: Code) -> Code | None:
    """The code with its example cured; None if there is no cure inside the kernel.

    Raises:
        ValueError: a text that is to be replaced is not in the example.
    """
    pairs = cures().get(code.code)
    if pairs is None:
        return None
    body, functions = code.example.body, code.example.functions
    for old, new in pairs:
        if old not in body and old not in functions:
            raise bad_value(f"{code.code}: cure", old, "a text of its example")
        body, functions = body.replace(old, new), functions.replace(old, new)
    return replace(code, example=replace(code.example, body=body, functions=functions))


def difference(code: Code) -> Iterator[str]:
    """The cure of an example as lines of a diff, without headers."""
    import difflib

    after = cured(code)
    if after is None:
        return
    one, two = (
        [*c.example.functions.splitlines(), *c.example.body.splitlines()] for c in (code, after)
    )
    for line in difflib.unified_diff(one, two, lineterm="", n=1):
        if not line.startswith(("---", "+++", "@@")):
            yield line
