"""Expert-parallel dispatch and combine, and the collectives around them.

``EPBuffer`` moves tokens between ranks over MPI, gloo, NCCL or HCCL; ``MoELayer`` trains on it;
``ep_comm.model`` predicts what a machine makes of it; ``python -m ep_comm`` runs all of that.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_where = {
    "EPBuffer": "ep_comm.buffer",
    "EPHandle": "ep_comm.handle",
    "EventOverlap": "ep_comm.event",
    "MoELayer": "ep_comm.moe",
    "PeerFailed": "ep_comm.errors",
    "PeerTimeout": "ep_comm.errors",
}

__all__ = ["EPBuffer", "EPHandle", "EventOverlap", "MoELayer", "PeerFailed", "PeerTimeout"]

if TYPE_CHECKING:
    from ep_comm.buffer import EPBuffer
    from ep_comm.errors import PeerFailed, PeerTimeout
    from ep_comm.event import EventOverlap
    from ep_comm.handle import EPHandle
    from ep_comm.moe import MoELayer


def __getattr__(name: str) -> Any:
    if name not in _where:
        raise AttributeError(f"module 'ep_comm' has no attribute {name!r}")
    return getattr(importlib.import_module(_where[name]), name)
