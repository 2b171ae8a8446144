"""``as_npu()``: code that looks for an NPU finds the emulated one; its tensors stay on the CPU.

Wrappers such as ``tile_kernels.moe.topk_gate`` ask for a device node, core counts and streams.
Inside the block those questions have the answers of an Ascend 950, and the kernels they launch run
here.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from ascendkit.emulator.hook import active
from ascendkit.emulator.kernel import CORES

DEVICE_NODE = "/dev/davinci_manager"


def _device_mode() -> Any:
    """A torch mode in which CPU tensors say they are on ``npu``, and ``npu`` means the CPU."""
    import torch
    from torch.overrides import TorchFunctionMode

    # Names torch's spare device kind "npu", as torch_npu does; repeating it is harmless.
    torch.utils.rename_privateuse1_backend("npu")
    npu, cpu = torch.device("npu"), torch.device("cpu")
    read_device = torch.Tensor.device.__get__

    def real(value: Any) -> Any:
        if isinstance(value, torch.device):
            return cpu if value.type == "npu" else value
        return cpu if isinstance(value, str) and value.partition(":")[0] == "npu" else value

    class Mode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if func == read_device:  # a new wrapper object every time
                device = func(*args, **kwargs)
                return npu if device.type == "cpu" else device
            args = tuple(real(a) if isinstance(a, (str, torch.device)) else a for a in args)
            if "device" in kwargs:
                kwargs = {**kwargs, "device": real(kwargs["device"])}
            return func(*args, **kwargs)

    return Mode()


def _absent_module() -> types.ModuleType:
    """A ``torch.npu`` without devices. The name of a device kind cannot be taken back, and torch
    looks for its module from then on (when it compiles, or seeds)."""
    module = types.ModuleType("torch.npu")
    answers: dict[str, Any] = {
        "is_available": lambda: False,
        "is_initialized": lambda: False,
        "device_count": lambda: 0,
        "current_device": lambda: 0,
        "manual_seed_all": lambda seed: None,
        "_is_in_bad_fork": lambda: False,
    }
    module.__dict__.update(answers)
    return module


def _npu_module(cores: int) -> types.ModuleType:
    """A ``torch.npu`` with what probing code asks."""
    module = types.ModuleType("torch.npu")
    properties = types.SimpleNamespace(
        name="Ascend950 (emulated)",
        cube_core_num=cores,
        vector_core_num=2 * cores,
        total_memory=128 << 30,
        L2_cache_size=128 << 20,
    )
    stream = types.SimpleNamespace(npu_stream=0, synchronize=lambda: None)
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_device_properties": lambda device=None: properties,
        "get_device_name": lambda device=None: properties.name,
        "synchronize": lambda device=None: None,
        "current_stream": lambda device=None: stream,
        "empty_cache": lambda: None,
        "manual_seed_all": lambda seed: None,
        "_is_in_bad_fork": lambda: False,
    }
    module.__dict__.update(answers)
    return module


def _cached_probes() -> list[Any]:
    """Functions of tile_kernels that remember the answer to a probe."""
    config = sys.modules.get("tile_kernels.config")
    if config is None:
        return []
    return [f for f in vars(config).values() if hasattr(f, "cache_clear")]


@contextmanager
def as_npu(cores: int = CORES) -> Iterator[None]:
    """Let upstream wrappers run unchanged on CPU tensors.

    Args:
        cores: AI cores of the emulated chip.
    """
    import torch

    exists = os.path.exists

    def with_node(path: Any) -> bool:
        return path == DEVICE_NODE or exists(path)

    if not hasattr(torch, "npu"):
        torch.npu = _absent_module()
    with ExitStack() as stack:
        stack.enter_context(active(cores))
        stack.enter_context(mock.patch("os.path.exists", with_node))
        stack.enter_context(mock.patch.object(torch, "npu", _npu_module(cores)))
        stack.enter_context(_device_mode())
        for probe in _cached_probes():
            probe.cache_clear()
        try:
            yield
        finally:
            for probe in _cached_probes():
                probe.cache_clear()
