"""Options without effect: what was asked for, and without which the same text is generated.

Three kinds: pass options; arguments of a factory that have a default; and what the function itself
asks for, versions of a buffer and stages of a loop. Each is left out alone. An option that another
one must switch on shows as one without effect, which is how such pairs go unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

_VERSIONS, _STAGES = "tl.buffer_versions_map", "num_stages"


def without_effect(kernel: Any, configs: Mapping[str, Any], text: str) -> Iterator[str]:
    """Pass options, versions and stages of a function lowered to ``text``, as ``name=value``."""
    for name in sorted(configs):
        rest = {k: v for k, v in configs.items() if k != name}
        if _same(lambda: kernel, rest, text):
            yield f"{name}={configs[name]!r}"
    for what, make in _requests(kernel):
        if _same(make, configs, text):
            yield what


def settings_without_effect(
    make: Callable[..., Any], settings: Mapping[str, Any], configs: Mapping[str, Any], text: str
) -> Iterator[str]:
    """Arguments of a factory, other than their default, that change nothing."""
    import inspect

    try:
        parameters = inspect.signature(getattr(make, "func", make)).parameters
    except (TypeError, ValueError):
        return
    build = getattr(make, "get_tir", make)
    for name, value in settings.items():
        default = parameters[name].default if name in parameters else inspect.Parameter.empty
        if default is inspect.Parameter.empty or default == value:
            continue
        rest = {k: v for k, v in settings.items() if k != name}
        if _same(partial(build, **rest), configs, text):
            yield f"{name}={value!r} (default {default!r})"


def _same(make: Callable[[], Any], configs: Mapping[str, Any], text: str) -> bool:
    """Whether this gives the same text; what does not lower does not."""
    from ascendkit.emulator.lowered import ascend_target, lower

    try:
        with ascend_target():
            return lower(make(), configs)["source"] == text
    except Exception:  # TVM's errors have no common base
        return False


def _requests(kernel: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a function asks for in its annotations, and the function without it."""
    from tilelang import tvm

    found: list[tuple[str, Any, str, Any]] = []

    def visit(node: Any) -> None:
        kind = type(node).__name__
        if kind == "SBlock":
            for variable, count in dict(node.annotations).get(_VERSIONS, {}).items():
                what = f"annotate_buffer_versions({{{variable.name}: {int(count)}}})"
                found.append((what, node, _VERSIONS, variable))
        elif kind == "For" and _STAGES in node.annotations:
            stages = int(node.annotations[_STAGES])
            found.append(
                (f"Pipelined({node.loop_var.name}, num_stages={stages})", node, _STAGES, None)
            )

    tvm.tirx.stmt_functor.post_order_visit(kernel.body, visit)
    for what, node, name, variable in found:
        yield what, partial(_dropped, kernel, node, name, variable)


def _dropped(kernel: Any, node: Any, name: str, variable: Any) -> Any:
    """``kernel`` without one annotation of ``node``, or without ``variable`` in it."""
    from tilelang import tvm

    def change(found: Any) -> Any:
        same = found.loop_var.same_as(node.loop_var) if name == _STAGES else _blocks(found, node)
        if not same:
            return None
        notes = {k: v for k, v in found.annotations.items() if k != name}
        if name == _STAGES:
            return tvm.tirx.For(
                found.loop_var, found.min, found.extent, found.kind, found.body,
                found.thread_binding, notes, found.step,
            )  # fmt: skip
        kept = {k: int(v) for k, v in found.annotations[name].items() if not k.same_as(variable)}
        if kept:
            notes[name] = kept
        return tvm.tirx.SBlock(
            found.iter_vars, found.reads, found.writes, found.name_hint, found.body, found.init,
            found.alloc_buffers, found.match_buffers, notes,
        )  # fmt: skip

    kind = "tirx.For" if name == _STAGES else "tirx.SBlock"
    return kernel.with_body(tvm.tirx.stmt_functor.ir_transform(kernel.body, None, change, [kind]))


def _blocks(one: Any, other: Any) -> bool:
    """Whether two blocks are the same; the body of one may have been changed."""
    mine, theirs = list(one.alloc_buffers), list(other.alloc_buffers)
    return (
        bool(mine) and len(mine) == len(theirs) and all(a.same_as(b) for a, b in zip(mine, theirs))
    )
