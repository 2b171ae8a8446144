"""The kernel that a command line names, with the arguments of its factory and of its launch."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendkit.errors import bad_value, unknown

OUTPUTS = ("table", "json", "html")


def launchable(args: Any, settings: dict[str, Any]) -> tuple[Any, list[Any], int | None]:
    """The kernel of a command line, its arguments and its grid.

    Raises:
        ValueError, TypeError: no such kernel, or arguments that do not fit.
        SourceError: a text that is not AscendC.
    """
    import torch

    from ascendkit.emulator.argument_text import parse
    from ascendkit.emulator.kernel import EmulatedKernel
    from ascendkit.emulator.lowered import LoweredKernel
    from ascendkit.emulator.source import Parameter

    torch.manual_seed(args.seed)
    if is_source(args.subject):
        kernel = EmulatedKernel(Path(args.subject).read_text(), args.kernel)
        values = parse(args.arg, kernel.kernel.parameters)
        if args.grid is None:
            raise ValueError("--grid: wanted the number of blocks to launch")
        return kernel, values, args.grid
    lowered = LoweredKernel(load(args.subject, settings))
    names = [Parameter(n, "", True) for n in lowered._names]
    return lowered, parse(args.arg, names), args.grid


def load(text: str, settings: dict[str, Any]) -> Any:
    """The prim_func that ``module:function`` makes of ``settings``.

    Raises:
        ValueError: no such module or function, or arguments it does not take.
    """
    from ascendkit.emulator.lowered import ascend_target

    factory = factory_of(text)
    if hasattr(factory, "buffer_map"):
        return factory
    make = getattr(factory, "get_tir", factory)
    try:
        with ascend_target():
            kernel = make(**settings)
    except TypeError as error:
        raise ValueError(f"{text}: {error}") from error
    if not hasattr(kernel, "buffer_map"):
        raise bad_value(text, type(kernel).__name__, "a function that makes a TileLang prim_func")
    return kernel


def factory_of(text: str) -> Any:
    """What ``module:function`` names."""
    from importlib import import_module

    module_name, colon, name = text.rpartition(":")
    if not colon or not module_name or not name:
        raise bad_value("kernel", text, "FILE.asc or module:function")
    if module_name.endswith(".py"):
        path = Path(module_name).resolve()
        sys.path.insert(0, str(path.parent))
        module_name = path.stem
    elif "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f"{text}: {error}") from error
    if not hasattr(module, name):
        public = [n for n in dir(module) if not n.startswith("_")]
        raise unknown(f"function of {module_name}", name, public)
    return getattr(module, name)


def pass_options(text: str) -> dict[str, Any]:
    """Pass options of a ``@tilelang.jit`` function."""
    return dict(getattr(factory_of(text), "pass_configs", None) or {})


def is_source(text: str) -> bool:
    """Whether a file of AscendC is meant."""
    return ":" not in text or text.endswith((".asc", ".cpp"))


def readable(text: str) -> bool:
    """Whether the emulator can read a text at all."""
    from ascendkit.emulator import source
    from ascendkit.emulator.errors import SourceError

    try:
        source.kernels(text)
    except SourceError:
        return False
    return True


def settings_of(texts: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """``output=`` and the arguments of a factory."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise bad_value("argument", text, "key=value")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    output = found.pop("output", "table")
    if output not in OUTPUTS:
        raise unknown("output", str(output), OUTPUTS)
    return output, found
