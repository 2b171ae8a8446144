"""The list of codes: severity, meaning, cure and an example each (``codes.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ascendkit.errors import bad_value

SEVERITIES = ("error", "warning", "advice", "note")
CONFIDENCES = ("documented", "inferred", "guessed")
KINDS = ("vector", "mixed", "source", "lint", "python", "none")


@dataclass(frozen=True)
class Example:
    """A kernel that gives the finding; see the head of codes.yaml."""

    kind: str
    body: str = ""
    functions: str = ""
    blocks: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class Code:
    """What one code means."""

    code: str
    severity: str
    title: str
    what: str
    cure: str
    confidence: str
    example: Example

    @property
    def page(self) -> str:
        """Its page, relative to the root of the repository."""
        return f"docs/findings/{self.code}.md"


@cache
def codes() -> dict[str, Code]:
    """All codes, sorted.

    Raises:
        ValueError: an entry of codes.yaml is incomplete.
    """
    from ascendkit import data

    raw = data.load_yaml(Path(__file__).with_name("codes.yaml"))
    return {code: _code(code, dict(entry)) for code, entry in sorted(raw.items())}


def lookup(code: str) -> Code:
    """The entry of ``code``; one that says so for a code that is not in the list."""
    known = codes().get(code)
    if known is not None:
        return known
    text = "a code that is not in the list"
    return Code(code, "error", text, text, "Report it.", "guessed", Example("none", why=text))


def _code(code: str, entry: dict[str, Any]) -> Code:
    for name, legal in (("severity", SEVERITIES), ("confidence", CONFIDENCES)):
        if entry.get(name) not in legal:
            raise bad_value(f"{code}: {name}", entry.get(name), " | ".join(legal))
    example = Example(**entry.pop("example", {"kind": "none", "why": ""}))
    if example.kind not in KINDS:
        raise bad_value(f"{code}: example kind", example.kind, " | ".join(KINDS))
    if example.kind == "none" and not example.why:
        raise ValueError(f"{code}: wanted an example, or why there is none")
    texts = {n: " ".join(str(entry.pop(n)).split()) for n in ("title", "what", "cure")}
    return Code(code=code, example=example, **texts, **entry)
