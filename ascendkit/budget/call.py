"""One operator call of a step, and the helper that turns weights into matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ascendkit.cost import Cost
from ascendkit.formats import fmt
from ascendkit.model import Weight
from ascendkit.registry import op


@dataclass(frozen=True)
class Call:
    """``count`` calls of one op with the same parameters, on one rank, in one step.

    Args:
        label: line of the report the call is added to.
        op: name in the registry.
        params: parameters of the op's cost.
        count: calls per step on one rank (a mean over pipeline stages, so it may be fractional).
        part: ``forward``, ``backward``, ``optimizer`` or ``pipeline``.
        keep: what the backward pass finds of this call's input: ``own`` (kept), ``shared`` (another
            call keeps it already) or ``cheap`` (kept unless recompute is selective).
        again: selective recompute runs this call once more in the backward pass.
        role: layer roles the calls belong to, for the JSON report.
        branch: calls of neighbouring branches may run beside each other; empty is the trunk.
    """

    label: str
    op: str
    params: Mapping[str, Any]
    count: float = 1.0
    part: str = "forward"
    keep: str = "own"
    again: bool = False
    role: str = ""
    branch: str = ""
    key: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.op, *sorted(self.params.items())))

    def placed(
        self, *, count: float | None = None, role: str | None = None, branch: str | None = None
    ) -> Call:
        """The same call elsewhere in the step. A budget makes thousands of these, and the key of
        their parameters stays what it is: ``dataclasses.replace`` would sort them anew."""
        made = object.__new__(Call)
        made.__dict__.update(self.__dict__)
        for name, value in (("count", count), ("role", role), ("branch", branch)):
            if value is not None:
                made.__dict__[name] = value
        return made

    @property
    def cost(self) -> Cost:
        """Cost of one call."""
        return _cost(self.key)


@lru_cache(maxsize=65536)
def _cost(key: tuple[Any, ...]) -> Cost:
    name, *params = key
    return op(name).cost(**dict(params))


def linear(
    label: str,
    w: Weight,
    rows: float,
    a: str = "bf16",
    d: str = "bf16",
    tp: int = 1,
    keep: str = "own",
    again: bool = False,
) -> Call:
    """The product of ``rows`` activations with a dense weight, its tensor-parallel share."""
    n, k, batch = (
        -(-size // tp) if w.shard == dim else size
        for dim, size in (("n", w.n), ("k", w.k), ("batch", w.batch))
    )
    quantised = fmt(w.fmt).family not in ("bf16", "fp32")
    params = dict(m=int(rows), n=n, k=k, batch=batch, a=a if quantised else "bf16", b=w.fmt, d=d)
    return Call(label, "gemm_mad.gemm", params, keep=keep, again=again)
