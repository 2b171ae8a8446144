"""``torch.library`` registration of ops, made on first call.

For op ``a.b`` with ``SCHEMA = "(Tensor x, int k) -> Tensor"`` this registers

- ``ascendkit::a_b(Tensor x, int k, str platform) -> Tensor``: functional, its fake kernel is the
  op's ``allocate``. Where the folder has ``backward.py``, the gradient is its
  ``setup_context(ctx, inputs, output)`` and ``backward(ctx, *grads)``, which gives one gradient for
  each of ``inputs``; the last of them is the platform, and gets None;
- ``ascendkit::a_b_out(Tensor x, int k, Tensor(out!) out, str platform) -> ()``: the same work into
  a caller's tensor.

Several outputs, ``-> (Tensor, Tensor)``, come back as a tuple, and the overload takes ``out0, out1,
...``, each of which may be None. Arguments marked ``!`` are written by both forms.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from ascendkit.registry import op as find
from ascendkit.schema import names, parse

_lock = threading.RLock()


@cache
def functional(name: str) -> Any:
    """The functional custom op of ``name``: call it with the schema's arguments and a platform."""
    import torch

    from ascendkit.dispatch import run

    op = find(name)
    module = op.load()
    schema = parse(module.SCHEMA)
    if op.has("backward") and schema.mutated:
        raise ValueError(f"{name}: got a gradient and mutated arguments, wanted one of them")

    def body(*args: Any) -> Any:
        return _all_tensors(run(op, args[-1], args[:-1]), args)

    def fake(*args: Any) -> Any:
        return _all_tensors(module.allocate(*args[:-1]), args)

    with _lock:
        custom = torch.library.custom_op(
            f"ascendkit::{_flat(name)}",
            body,
            mutates_args=names(schema.arguments[i] for i in schema.mutated),
            schema=schema.functional(),
        )
        custom.register_fake(fake)
        if op.has("backward"):
            gradient = op.load("backward")
            custom.register_autograd(gradient.backward, setup_context=gradient.setup_context)
    return custom


@cache
def mutating(name: str) -> Any:
    """The ``out=`` overload of ``name``: the schema's arguments, the outputs, and a platform."""
    import torch

    from ascendkit.dispatch import run

    op = find(name)
    schema = parse(op.load().SCHEMA)
    count = len(schema.returns)

    def body(*args: Any) -> None:
        out = args[-1 - count : -1]
        run(op, args[-1], args[: -1 - count], out[0] if count == 1 else out)

    written = names((*(schema.arguments[i] for i in schema.mutated), *schema.outs))
    with _lock:
        custom = torch.library.custom_op(
            f"ascendkit::{_flat(name)}_out", body, mutates_args=written, schema=schema.mutating()
        )
        custom.register_fake(lambda *args: None)
    return custom


def has_outputs(name: str) -> bool:
    """Whether ``name`` returns something, and so has an ``out=`` overload."""
    return bool(parse(find(name).load().SCHEMA).returns)


def _all_tensors(out: Any, args: tuple[Any, ...]) -> Any:
    """``out`` with an empty tensor for every output that nobody wants."""
    import torch

    if not isinstance(out, (tuple, list)):
        return out
    like = next(a for a in args if isinstance(a, torch.Tensor))
    return tuple(like.new_empty(0) if t is None else t for t in out)


def _flat(name: str) -> str:
    return name.replace(".", "_")
