"""The kernel that a command line names, with the arguments of its factory and of its launch."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ascendkit.emulator.errors import EmulatorError
from ascendkit.errors import bad_value, unknown

OUTPUTS = ("table", "json", "html")
NO_BLOCK = "cannot judge: no block ran"


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
        kernel = EmulatedKernel(read(args.subject), args.kernel)
        values = parse(args.arg, kernel.kernel.parameters)
        return kernel, values, blocks(args.grid)
    if args.grid is not None:
        raise ValueError(f"--grid: got {args.grid}, wanted none: a TileLang function has its own")
    function, configs = load(args.subject, settings)
    with users_code(args.subject):
        lowered = LoweredKernel(function, None, configs)
    names = [Parameter(n, "", True) for n in lowered._names]
    return lowered, parse(args.arg, names), args.grid


def blocks(grid: int | None) -> int:
    """``--grid`` of a text: at least one block, since of none there is nothing to say."""
    if grid is None:
        raise ValueError("--grid: wanted the number of blocks to launch")
    if grid == 0:
        raise ValueError(f"--grid: got 0, wanted 1 or more blocks: {NO_BLOCK}")
    return grid


def read(text: str) -> str:
    """What is in a file.

    Raises:
        ValueError: no such file, or not a text.
    """
    path = Path(text)
    if not path.is_file():
        raise bad_value("file", text, "an existing file")
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise bad_value("file", text, f"a text: {error}") from error


def load(text: str, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The prim_func that ``module:function`` makes of ``settings``, and the pass options that
    TileLang compiles it with.

    Raises:
        ValueError: no such module or function, or arguments it does not take.
    """
    from ascendkit.emulator.lowered import ascend_target

    factory = factory_of(text)
    if hasattr(factory, "buffer_map"):
        return factory, {}
    make = getattr(factory, "get_tir", factory)
    with users_code(text), ascend_target():
        kernel = make(**settings)
    if not hasattr(kernel, "buffer_map"):
        raise bad_value(text, type(kernel).__name__, "a function that makes a TileLang prim_func")
    return kernel, dict(getattr(factory, "pass_configs", None) or {})


@contextmanager
def users_code(text: str) -> Iterator[None]:
    """What a user's file raises is a ValueError of one line that says where."""
    try:
        yield
    except EmulatorError:
        raise
    except (Exception, SystemExit) as error:
        what = " ".join(str(error).split())
        if isinstance(error, SyntaxError):
            where, what = f"{error.filename}:{error.lineno}: ", str(error.msg)
        else:
            where = _place(error)
        kind = type(error).__name__
        raise ValueError(f"{text}: cannot judge: {where}{kind}: {what}") from error


def _place(error: BaseException) -> str:
    """The innermost line outside of TileLang, this package and Python itself."""
    from sysconfig import get_paths

    own = str(Path(__file__).parents[1])
    installed = {get_paths()[name] for name in ("stdlib", "purelib", "platlib")}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        outside = not frame.filename.startswith((own, *installed))
        if outside and Path(frame.filename).is_file():  # TVM's frames of C++ are no files here
            return f"{frame.filename}:{frame.lineno}: "
    return ""


def factory_of(text: str) -> Any:
    """What ``module:function`` names."""
    from importlib import import_module

    module_name, colon, name = text.rpartition(":")
    if not colon or not module_name or not name:
        raise bad_value("kernel", text, "FILE.asc or module:function")
    if module_name.endswith(".py"):
        path = Path(module_name).resolve()
        read(module_name)
        sys.path.insert(0, str(path.parent))
        module_name = path.stem
    elif "" not in sys.path:
        sys.path.insert(0, "")
    with users_code(text):
        module = import_module(module_name)
    if not hasattr(module, name):
        public = [n for n in dir(module) if not n.startswith("_")]
        raise unknown(f"function of {module_name}", name, public)
    factory = getattr(module, name)
    return getattr(factory, "jit_impl", factory)  # of an autotuned one


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
