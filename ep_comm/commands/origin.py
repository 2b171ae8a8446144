"""Where a record comes from: device, commit, versions and the command."""

from __future__ import annotations

import sys
from typing import Any

from ascendkit.bench.environment import commit, device_name, environment


def origin(kind: str) -> dict[str, Any]:
    """Fields of every record; ``kind`` is the device type. A launcher around it goes without
    saying: the record has ``ranks``."""
    return {
        "device": device_name(kind), "commit": commit(), "environment": environment(kind),
        "command": " ".join(["python -m ep_comm", *sys.argv[1:]]),
    }  # fmt: skip
