"""From whatever names a group of ranks to the transports of a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ascendkit.errors import bad_type
from ep_comm import agree
from ep_comm.path import Grid

if TYPE_CHECKING:
    from ep_comm.transport.base import Transport


class Group(Protocol):
    """A group of ranks a buffer can be built on."""

    backend: str
    rank: int
    size: int
    scaleup_ranks: int

    def connect(self, num_bytes: int, capacity: int, timeout_s: float) -> Transport:
        """A transport over all ranks; collective."""
        ...


def as_group(group: Any) -> Group:
    """An mpi4py communicator, a torch ProcessGroup, or a group of ours.

    Raises TypeError for anything else.
    """
    if hasattr(group, "connect") and hasattr(group, "scaleup_ranks"):
        return group  # type: ignore[no-any-return]
    kind = f"{type(group).__module__}.{type(group).__name__}"
    if kind.startswith("mpi4py."):
        from ep_comm.transport.mpi import MPIGroup

        return MPIGroup(group)
    if "ProcessGroup" in kind:
        from ep_comm.transport.torch_dist import TorchGroup

        return TorchGroup(group)
    raise bad_type("group", group, "an mpi4py communicator, a ProcessGroup, or an ep_comm group")


def connect(group: Group, num_bytes: int, timeout_s: float, hybrid: bool) -> Grid:
    """All transports of a buffer; every rank of the group calls it."""
    near = group.scaleup_ranks
    nodes = group.size // near
    capacity = agree.CAPACITY
    if not hybrid or nodes == 1:
        return Grid(group.connect(num_bytes, capacity, timeout_s))
    # Rows travel on rail and node only; the whole group meets, and moves nothing.
    whole = group.connect(0, capacity, timeout_s)
    place, node = group.rank % near, group.rank // near
    rail = whole.split([n * near + place for n in range(nodes)], num_bytes)
    return Grid(whole, rail, whole.split([node * near + i for i in range(near)], num_bytes))
