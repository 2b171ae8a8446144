"""Every rank learns what every rank asks for, before anything moves.

A wrong argument on one rank, or ranks that ask for different things, raise the same text on all of
them; nobody is left waiting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ep_comm.transport.base import Transport

TEXT = 600
SHOWN = 4
CAPACITY = 16384
"""Bytes of one rank's answer; counts of 1024 ranks and 2048 experts fit as well."""


def agree(
    transport: Transport, what: str, asked: Mapping[str, Any], error: Exception | None
) -> None:
    """Raise on every rank, or on none.

    Args:
        what: the call; ranks that call different things disagree on ``call``.
        asked: what must be the same everywhere.
        error: what this rank found wrong with its own arguments.

    Raises:
        ValueError: a rank found something wrong, or ranks disagree. TypeError where the first rank
            with an error found one.
    """
    mine: dict[str, Any] = {"call": what, **asked}
    if error is not None:
        known = isinstance(error, (TypeError, ValueError))
        text = str(error) if known else f"{type(error).__name__}: {error}"
        mine = {"error": [isinstance(error, TypeError), text[:TEXT]]}
    blobs = transport.gather(json.dumps(mine).encode(), what)
    if error is None and len(set(blobs)) == 1:
        return
    heard = [json.loads(b) for b in blobs]
    wrong = [(r, h["error"]) for r, h in enumerate(heard) if "error" in h]
    if wrong:
        told = "; ".join(f"rank {r}: {text}" for r, (_, text) in wrong[:SHOWN])
        more = f"; and {len(wrong) - SHOWN} more ranks" if len(wrong) > SHOWN else ""
        raise (TypeError if wrong[0][1][0] else ValueError)(told + more)
    for key in dict.fromkeys(k for h in heard for k in h):
        by_value: dict[str, list[int]] = {}
        for r, h in enumerate(heard):
            by_value.setdefault(json.dumps(h.get(key)), []).append(r)
        if len(by_value) > 1:
            told = "; ".join(f"{v} on {_ranks(rs)}" for v, rs in list(by_value.items())[:SHOWN])
            raise ValueError(f"ranks disagree on {key}: {told}")


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{', ...' if len(ranks) > 8 else ''}"
