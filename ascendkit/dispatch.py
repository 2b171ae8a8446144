"""From a public function to the implementation that serves it.

The public function of an op checks its arguments and calls :func:`call`. Eager calls go straight to
the implementation; under ``torch.compile``, fake tensors, functorch, or where a gradient is wanted
they go through the op's ``torch.library`` registration, which is made on first use (see
:mod:`ascendkit.library`).

Outputs are what ``SCHEMA`` says (see :mod:`ascendkit.schema`): one tensor, or a tuple. An output
nobody wants is None in the tuple that ``allocate`` gives, that a caller passes as ``out``, and that
the implementation's ``run(*args, out=...)`` receives; a registered op, which must return tensors,
gives an empty one in its place. An op that works in place has no outputs: ``run`` receives
``out=None``. An argument that is read and written, and whose op has a gradient, is better an input
and an output of the schema: the public function passes the caller's tensor as that output (eager),
or copies the result into it (:func:`traced`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ascendkit import platform as platforms
from ascendkit.errors import bad_type, bad_value
from ascendkit.op import FILE_OF_PLATFORM, Case, Op
from ascendkit.registry import op as find
from ascendkit.schema import names, outputs, parse

if TYPE_CHECKING:
    import torch

DEVICE_OF_PLATFORM = {"reference": "cpu", "emulator": "cpu", "ascend": "npu", "cuda": "cuda"}
"""Device type of the tensors each platform works on."""


def call(
    name: str,
    args: tuple[Any, ...],
    params: Mapping[str, Any],
    *,
    out: Any = None,
    platform: str | None = None,
) -> Any:
    """Run op ``name``; returns ``out``, or fresh outputs where ``out`` is None.

    Args:
        args: positional arguments of the op's ``SCHEMA``.
        params: what ``supports`` needs to know of them.
        out: caller's output, or a tuple with every output (None for one that is not wanted),
            already checked; written in place.
        platform: a platform the caller forces.

    Raises:
        TypeError: tensors without values (on the meta device), which nothing traces.
        ValueError: the platform does not match the tensors' device, or cannot serve the case; or
            ``out`` is given where a gradient is wanted; or what is written shares memory with what
            is only read.
    """
    import torch

    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    kind = tensors[0].device.type if tensors else None
    if torch.compiler.is_compiling():
        return _into_graph(torch, name, args, _registered(name, kind, platform), out)
    op = find(name)
    chosen = platforms.current(kind, platform)
    looked_at = traced(tensors)
    if kind == "meta" and not looked_at:
        raise TypeError(f"{op.name}: got a tensor on meta, wanted one that holds values")
    if kind != "meta":
        _check_device(op, tensors, chosen)
        check_support(op, chosen, params)
    if not looked_at:
        _check_apart(op, args, out)
    wanted = _gradient_wanted(torch, op, tensors)
    if wanted and out is not None:
        raise ValueError(f"{op.name}: got out= and an input that requires a gradient, wanted one")
    if wanted or looked_at:
        from ascendkit import library

        if out is None:
            return library.functional(name)(*args, chosen)
        library.mutating(name)(*args, *outputs(out), chosen)
        return out
    return run(op, chosen, args, out)


def run(op: Op, platform: str, args: tuple[Any, ...], out: Any = None) -> Any:
    """Run ``op`` on ``platform`` with checked arguments; early return where there is no work."""
    if platform == "reference":
        result = op.load("reference").reference(*args)
        if out is None:
            return result
        for mine, theirs in zip(outputs(out), outputs(result), strict=True):
            if mine is not None:
                mine.copy_(theirs)
        return out
    module = op.load()
    if out is None:
        out = module.allocate(*args)
    written = (*outputs(out), *parse(module.SCHEMA).written(args))
    if not any(t is not None and t.numel() for t in written):
        return out
    with _emulated() if platform == "emulator" else nullcontext():
        op.load(FILE_OF_PLATFORM[platform]).run(*args, out=out)
    return out


def check_support(op: Op, platform: str, params: Mapping[str, Any]) -> None:
    """Raise ValueError with the reason where ``platform`` cannot serve ``params``."""
    support = op.supports(platform, Case("call", params))
    if not support:
        raise ValueError(
            f"{op.name}: platform {platform!r} cannot serve this call: {support.reason}"
        )


def check_dense(what: str, got: Any) -> None:
    """Raise TypeError unless ``got`` is a tensor with strides: neither sparse nor nested."""
    import torch

    if not isinstance(got, torch.Tensor):
        raise bad_type(what, got, "a torch.Tensor")
    if torch.compiler.is_compiling():
        return  # Dynamo reads no layout in a gradient's forward.
    if got.layout != torch.strided or got.is_nested:
        kind = "a nested tensor" if got.is_nested else str(got.layout)
        raise TypeError(f"{what}: got {kind}, wanted a dense tensor (torch.strided)")


def _check_apart(op: Op, args: tuple[Any, ...], out: Any) -> None:
    """Raise where a tensor that is written shares memory with one that is only read.

    Outputs are called ``out``, ``out0``, ..., or what the package's ``OUTPUTS`` names them.
    """
    import torch

    if torch._C._functorch.peek_interpreter_stack() is not None:
        return  # Its tensors have no addresses.
    module = op.load()
    schema = parse(module.SCHEMA)
    named = list(zip(names(schema.arguments), args))
    written = [named[i] for i in schema.mutated if i < len(named)]
    written += zip(getattr(module, "OUTPUTS", names(schema.outs)), outputs(out))
    written = [(name, t) for name, t in written if isinstance(t, torch.Tensor) and t.numel()]
    if not written:
        return
    for i, (name, t) in enumerate(named):
        if i in schema.mutated or not isinstance(t, torch.Tensor) or not t.numel():
            continue
        for target, w in written:
            if _overlap(t, w):
                raise bad_value(
                    f"{op.name} {target}", f"memory of {name}", "memory apart from every input"
                )


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one device share bytes; columns of one matrix may lie side by side."""
    low, other = (a, b) if a.data_ptr() <= b.data_ptr() else (b, a)
    distance = other.data_ptr() - low.data_ptr()
    if distance >= _span(low):
        return False
    if a.dim() != 2 or b.dim() != 2:
        return True
    pitch = low.stride(0) * low.element_size()
    if not pitch or other.stride(0) * other.element_size() != pitch:
        return True
    # Equal pitch: rows of both, seen from the start of a row of the first.
    begin = distance % pitch
    return bool(begin < _span(low[0]) or begin + _span(other[0]) > pitch)


def _span(t: torch.Tensor) -> int:
    """Bytes from the first element of ``t`` to the end of its last."""
    last = sum((n - 1) * step for n, step in zip(t.shape, t.stride()))
    return int((last + 1) * t.element_size())


def _check_device(op: Op, tensors: list[torch.Tensor], platform: str) -> None:
    wanted = DEVICE_OF_PLATFORM[platform]
    for t in tensors:
        if t.device.type != wanted:
            raise ValueError(
                f"{op.name}: got a tensor on {t.device}, wanted {wanted} for platform {platform!r}"
            )


def _into_graph(torch: Any, name: str, args: tuple[Any, ...], platform: str, out: Any) -> Any:
    """The call as a node of the graph that is being compiled."""
    flat = name.replace(".", "_")
    if out is None:
        return getattr(torch.ops.ascendkit, flat)(*args, platform)
    getattr(torch.ops.ascendkit, f"{flat}_out")(*args, *outputs(out), platform)
    return out


def _registered(name: str, device_type: str | None, platform: str | None) -> str:
    """Register the op; the platform a compiled call will run on, fixed when it is traced."""
    from ascendkit import library

    library.functional(name)
    if library.has_outputs(name):
        library.mutating(name)
    return platforms.current(device_type, platform)


# What torch.compiler.assume_constant_result sets; importing this module must not import torch.
_registered._dynamo_marked_constant = True  # type: ignore[attr-defined]


def traced(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether something between a caller of these tensors and the hardware looks at the call."""
    import torch

    if torch.compiler.is_compiling():
        return True
    plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors)
    return not plain or bool(torch._C._len_torch_dispatch_stack())


def _gradient_wanted(torch: Any, op: Op, tensors: Iterable[torch.Tensor]) -> bool:
    if not op.has("backward") or not torch.is_grad_enabled():
        return False
    return any(t.requires_grad for t in tensors)


def _emulated() -> Any:
    from ascendkit.emulator import active

    return active()
