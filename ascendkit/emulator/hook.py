"""``active()``: TileLang kernels for Ascend compile for, and run on, this CPU inside the block."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ascendkit.emulator import fresh
from ascendkit.emulator.kernel import CORES, check_by_default
from ascendkit.emulator.lowered import LoweredKernel, ascend_target


@dataclass(frozen=True)
class Settings:
    """How kernels inside the block run.

    ``cores`` AI cores (one cube and two vector cores each); ``check``: whether judges run, None:
    as the environment says.
    """

    cores: int = CORES
    check: bool | None = None


settings: ContextVar[Settings | None] = ContextVar("ascendkit_emulator", default=None)


@contextmanager
def active(cores: int = CORES, check: bool | None = None) -> Iterator[None]:
    """Run every ``@tilelang.jit`` kernel for Ascend on the emulator inside the block.

    The default target inside is Ascend; kernels decorated for another target are untouched.

    Args:
        cores: AI cores of the emulated chip (32 on an Ascend 950DT; 28 and 36 exist).
        check: run the judges at every launch (default: what ASCENDKIT_EMULATOR_CHECK says).
    """
    _install()
    token = settings.set(Settings(cores, check))
    judged = check_by_default() if check is None else check
    try:
        with ascend_target(), fresh.watching() if judged else nullcontext():
            yield
    finally:
        settings.reset(token)


def _is_ascend(target: Any) -> bool:
    from tilelang.backend.target import determine_target
    from tvm.target import Target

    if target is None:
        target = "auto"
    if isinstance(target, str) and target.strip() in ("ascend", "asc"):
        return True
    if target == "auto":
        current = Target.current(allow_none=True)
        return current is not None and current.kind.name == "ascend"
    try:
        found = determine_target(target, return_object=True)
    except Exception:
        return False
    return bool(getattr(getattr(found, "kind", None), "name", "") == "ascend")


class _Compiled(LoweredKernel):
    """What ``tilelang.compile`` returns inside the block; answers as a JITKernel does."""

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The generated AscendC."""
        return self.kernel_source

    @property
    def out_idx(self) -> list[int]:
        """Indices of the returned parameters."""
        return self.result_idx


@functools.cache
def _install() -> None:
    """Wrap TileLang's compile functions once; outside an active block they are what they were."""
    import tilelang

    # The package attribute ``tilelang.jit`` is the decorator, which hides the module.
    jit: Any = import_module("tilelang.jit")
    original = jit.compile

    @functools.wraps(original)
    def compile(func: Any = None, out_idx: Any = None, *args: Any, **kwargs: Any) -> Any:
        if settings.get() is None or not _is_ascend(kwargs.get("target", _third(args))):
            return original(func, out_idx, *args, **kwargs)
        attrs = func.attrs
        configs = dict(kwargs.get("pass_configs") or {})
        if attrs and "tilelang_out_idx" in attrs:
            out_idx = [int(i) for i in attrs["tilelang_out_idx"]]
        return _Compiled(func, out_idx, configs)

    jit.compile = compile
    if tilelang.compile is original:
        tilelang.compile = compile
    _separate_caches(jit.JITImpl)


def _third(args: tuple[Any, ...]) -> Any:
    """The ``target`` argument when passed by position (execution_backend comes before it)."""
    return args[1] if len(args) > 1 else None


def _separate_caches(jit_impl: Any) -> None:
    """Kernels compiled inside a block must not be found outside it, nor the other way round."""
    original = jit_impl.__call__
    caches = ("_kernel_cache", "_call_form_cache")

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if settings.get() is None:
            return original(self, *args, **kwargs)
        outside = {name: getattr(self, name) for name in caches}
        inside = self.__dict__.get("_ascendkit_caches")
        if inside is None:
            inside = {"_kernel_cache": {}, "_call_form_cache": type(outside[caches[1]])()}
            self.__dict__["_ascendkit_caches"] = inside
        self.__dict__.update(inside)
        try:
            return original(self, *args, **kwargs)
        finally:
            self.__dict__.update(outside)

    jit_impl.__call__ = call
