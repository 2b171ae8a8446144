"""``@pytest.mark.ascend_emulator``: findings that a test expects, and why."""

from __future__ import annotations

from typing import Any

import pytest

NAME = "ascend_emulator"
HELP = (
    f'{NAME}(findings="allow", codes=[...], reason="..."): under --ascend-emulator findings of '
    "these codes are reported and do not fail the test, nor fixtures of its scope"
)


def read(node: Any) -> tuple[dict[str, str], list[str]]:
    """Codes that the markers of ``node`` allow, with their reasons; and what is wrong with markers
    that allow nothing in particular, or say not why: these allow nothing."""
    found: dict[str, str] = {}
    wrong = []
    for marker in node.iter_markers(NAME):
        try:
            codes, reason = _read(marker)
        except ValueError as error:
            wrong.append(f"marker {NAME}: {error}")
        else:
            found.update(dict.fromkeys(codes, reason))
    return found, wrong


def _read(marker: pytest.Mark) -> tuple[list[str], str]:
    given = dict(marker.kwargs)
    mode, codes, reason = (given.pop(k, None) for k in ("findings", "codes", "reason"))
    if marker.args or given:
        stray = ", ".join([*map(repr, marker.args), *(f"{k}={v!r}" for k, v in given.items())])
        raise ValueError(f'got {stray}, wanted only findings="allow", codes=[...], reason="..."')
    if mode != "allow":
        raise ValueError(f'findings: got {mode!r}, wanted findings="allow"')
    if not isinstance(codes, (list, tuple)) or not codes:
        raise ValueError(f"codes: got {codes!r}, wanted a list of codes")
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError(f"reason: got {reason!r}, wanted a text")
    from ascendkit.emulator.findings.codes import codes as known
    from ascendkit.errors import unknown

    for code in codes:
        if code not in known():
            raise unknown("code", str(code), known())
    return list(codes), reason
