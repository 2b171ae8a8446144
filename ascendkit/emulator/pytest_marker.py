"""``@pytest.mark.ascend_emulator``: findings that a test expects, and why."""

from __future__ import annotations

from typing import Any

import pytest

NAME = "ascend_emulator"
HELP = (
    f'{NAME}(findings="allow", codes=[...], reason="..."): under --ascend-emulator findings of '
    "these codes are reported and do not fail the test, nor fixtures of its scope"
)


def allowed(node: Any) -> dict[str, str]:
    """Codes that the markers of ``node`` allow, with their reasons.

    Raises:
        pytest.UsageError: a marker that allows nothing in particular, or says not why.
    """
    found: dict[str, str] = {}
    for marker in node.iter_markers(NAME):
        codes, reason = _read(marker, node.nodeid)
        found.update(dict.fromkeys(codes, reason))
    return found


def _read(marker: pytest.Mark, where: str) -> tuple[list[str], str]:
    given = dict(marker.kwargs)
    mode, codes, reason = (given.pop(k, None) for k in ("findings", "codes", "reason"))
    if marker.args or given or mode != "allow":
        raise pytest.UsageError(f'{where}: marker {NAME}: wanted findings="allow", codes=, reason=')
    if not isinstance(codes, (list, tuple)) or not codes:
        raise pytest.UsageError(f"{where}: marker {NAME}: codes: got {codes!r}, wanted a list")
    if not isinstance(reason, str) or not reason.strip():
        raise pytest.UsageError(f"{where}: marker {NAME}: reason: got {reason!r}, wanted a text")
    from ascendkit.emulator.findings.codes import codes as known
    from ascendkit.errors import unknown

    for code in codes:
        if code not in known():
            raise pytest.UsageError(f"{where}: {unknown(f'marker {NAME}: code', code, known())}")
    return list(codes), reason
