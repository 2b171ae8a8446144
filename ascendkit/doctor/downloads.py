"""``python -m ascendkit.doctor.downloads <pip install arguments>``: what would pip fetch?

Asks pip for its plan and each file's server for its size; installs nothing. Where an answer does
not come it says so and exits 0: an announcement must never stop an installation.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

LARGE_BYTES = 1e9
"""From here on we say how to get a smaller torch."""


def plan(arguments: Sequence[str]) -> list[dict[str, Any]] | None:
    """What ``pip install <arguments>`` would download, as pip reports it; None: it cannot say."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    try:
        items: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    except (json.JSONDecodeError, KeyError):
        return None
    return [item for item in items if "dir_info" not in item["download_info"]]


def size(url: str) -> int | None:
    """Bytes of the file behind ``url``, None where nobody says."""
    try:
        parts = urlparse(url)
        if parts.scheme == "file":
            return Path(unquote(parts.path)).stat().st_size
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=5) as reply:
            return int(reply.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None


def announcement(arguments: Sequence[str]) -> str:
    """Lines to print before ``pip install <arguments>``; "" where nothing is to be fetched."""
    items = plan(arguments)
    if items is None:
        return "to download: pip (22.2 or newer) could not say"
    with ThreadPoolExecutor(8) as pool:
        sizes = list(pool.map(size, (item["download_info"]["url"] for item in items)))
    rows = sorted(
        zip(sizes, (f"{i['metadata']['name']} {i['metadata']['version']}" for i in items)),
        key=lambda row: (-(row[0] or 0), row[1]),
    )
    if not rows:
        return ""
    known = sum(s or 0 for s in sizes)
    dark = sum(s is None for s in sizes)
    tail = f" and {dark} of unknown size" if dark else ""
    lines = [f"to download: {len(rows)} packages, {_mb(known)}{tail}; the largest:"]
    lines += [f"  {_mb(s) if s is not None else 'unknown':>10}  {name}" for s, name in rows[:4]]
    if known > LARGE_BYTES:
        lines.append("  most of it is torch for CUDA; TORCH_INDEX=<index of CPU wheels> is smaller")
    return "\n".join(lines)


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


if __name__ == "__main__":
    text = announcement(sys.argv[1:])
    if text:
        print(text, flush=True)
