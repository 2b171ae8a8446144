"""Whether CANN's libraries can be loaded here, found out without loading anything.

An installed torch-npu registers itself with torch, so that a plain ``import torch`` loads it.
Without CANN that load fails and takes torch down with it: torch cannot be imported a second time in
the same process. :func:`spare_torch` keeps torch usable on such a machine.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

LIBRARY = "libhccl.so"
"""First library torch-npu 2.13.0 asks the loader for (seen as its ImportError without CANN)."""

_CACHE = Path("/etc/ld.so.cache")
_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def found() -> bool:
    """Whether the dynamic loader would find CANN: on LD_LIBRARY_PATH, else in its cache."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if any(Path(folder, LIBRARY).is_file() for folder in folders if folder):
        return True
    try:
        return LIBRARY.encode() in _CACHE.read_bytes()
    except OSError:
        return False


def spare_torch() -> bool:
    """Keep ``import torch`` working where torch-npu is installed and CANN is not.

    Tells torch not to load backends by itself, in this process only. Does nothing where torch is
    already imported, where the user has set the variable, or where torch-npu would load: there
    ``tensor.npu()`` goes on working as the user knows it. Returns whether it did something.
    """
    if "torch" in sys.modules or _AUTOLOAD in os.environ:
        return False
    if importlib.util.find_spec("torch_npu") is None or found():
        return False
    os.environ[_AUTOLOAD] = "0"
    return True
