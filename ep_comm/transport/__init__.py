"""Who moves the bytes: threads of one process, MPI windows, or torch.distributed."""

from ep_comm.transport.base import Memory, Transport

__all__ = ["Memory", "Transport"]
