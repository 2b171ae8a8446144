"""Cases that must be refused: the right exception, and nothing done before it.

Errors in metadata (shape, dtype, stride, limits) must come before any allocation; errors in values
need a look at the values, and are asked for on the CPU platforms only, where looking is free. Which
kind a case is shows on meta tensors: they carry metadata and no values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ascendkit.check.outcome import PASS, Finding, describe, failed, skipped
from ascendkit.op import Case
from ascendkit.testing.memory import copied, tensors

VALUES_CHECKED_ON = ("reference", "emulator")


def refusal(
    function: Callable[..., Any], case: Case, args: tuple[Any, ...], platform: str
) -> Finding:
    """Whether ``function(*args)`` raises ``case.error``, early enough and with a message."""
    judge = f"raises {case.error}"
    # On meta tensors a call that is not refused reaches an implementation: the reference bears it.
    told = _raised(lambda: function(*copied(args, "meta"), platform="reference"))
    metadata = _is(told, case.error)
    if not metadata and platform not in VALUES_CHECKED_ON and not case.params.get("check_values"):
        return skipped(f"an error in values: not looked for on {platform} by default")
    watch: list[str] = []
    if metadata:
        watch, got = _watched(lambda: function(*args, platform=platform), args)
    else:
        # Not under a watch: a call that something traces does not look at values.
        got = _raised(lambda: function(*args, platform=platform))
    if got is None:
        return failed(f"got no exception, wanted {case.error}", judge)
    if not _is(got, case.error):
        return failed(f"got {describe(got)}, wanted {case.error}", judge)
    if not str(got).strip():
        return failed(f"{case.error} without a message", judge)
    if watch:
        return failed(f"allocates ({', '.join(sorted(set(watch)))}) before it raises", judge)
    return Finding(PASS, "", judge)


def _raised(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as e:
        return e
    return None


def _is(error: Exception | None, name: str) -> bool:
    return any(c.__name__ == name for c in type(error).__mro__) and error is not None


def _watched(call: Callable[[], Any], args: tuple[Any, ...]) -> tuple[list[str], Exception | None]:
    """Names of the torch operations that made new memory, and what the call raised."""
    from torch.utils._python_dispatch import TorchDispatchMode

    made: list[str] = []
    known = {t.untyped_storage()._cdata for t in tensors(args)}

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            made.extend(str(func) for t in tensors(out) if t.untyped_storage()._cdata not in known)
            return out

    with Watch():
        error = _raised(call)
    return made, error
