"""``torch.library`` registration of ops, made on first call.

For op ``a.b`` with ``SCHEMA = "(Tensor x, int k) -> Tensor"`` this registers

- ``ascendkit::a_b(Tensor x, int k, str platform) -> Tensor``: functional, its fake kernel is the
  op's ``allocate``; autograd is registered where the op has ``backward`` (see the op's module);
- ``ascendkit::a_b_out(Tensor x, int k, Tensor(a!) out, str platform) -> ()``: the same work into a
  caller's tensor.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from ascendkit.registry import op as find

_lock = threading.RLock()


@cache
def functional(name: str) -> Any:
    """The functional custom op of ``name``: call it with the schema's arguments and a platform."""
    import torch

    from ascendkit.dispatch import run

    op = find(name)
    module = op.load()
    arguments, returns = _split(module.SCHEMA)

    def body(*args: Any) -> Any:
        return run(op, args[-1], args[:-1])

    def fake(*args: Any) -> Any:
        return module.allocate(*args[:-1])

    with _lock:
        custom = torch.library.custom_op(
            f"ascendkit::{_flat(name)}",
            body,
            mutates_args=(),
            schema=f"({arguments}, str platform) -> {returns}",
        )
        custom.register_fake(fake)
        if hasattr(module, "backward"):
            custom.register_autograd(module.backward, setup_context=module.setup_context)
    return custom


@cache
def mutating(name: str) -> Any:
    """The ``out=`` overload of ``name``: schema's arguments, the output, and a platform."""
    import torch

    from ascendkit.dispatch import run

    op = find(name)
    arguments, _ = _split(op.load().SCHEMA)

    def body(*args: Any) -> None:
        run(op, args[-1], args[:-2], args[-2])

    with _lock:
        custom = torch.library.custom_op(
            f"ascendkit::{_flat(name)}_out",
            body,
            mutates_args=("out",),
            schema=f"({arguments}, Tensor(a!) out, str platform) -> ()",
        )
        custom.register_fake(lambda *args: None)
    return custom


def _split(schema: str) -> tuple[str, str]:
    arguments, _, returns = schema.partition("->")
    return arguments.strip().removeprefix("(").removesuffix(")"), returns.strip()


def _flat(name: str) -> str:
    return name.replace(".", "_")
