"""The symmetric-memory path on processes: torch's module is replaced by mapped files, the rest is
what runs on GPUs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ep_comm.contract import Spec, check


@pytest.mark.mpi
@pytest.mark.parametrize(("near", "synced"), [(4, True), (2, True), (4, False)])
def test_contract_over_symmetric_memory(pool, tmp_path, near, synced, seed):
    spec = Spec(
        tokens=17, num_experts=16, num_topk=4, fp8=True, num_bias=1, cpu_sync=synced, seed=seed
    )
    got = pool("gloo", 4).run(
        "tests.ep_comm.test_ep_symmetric:checked", [(spec, str(tmp_path), near)] * 4
    )
    assert got == [[]] * 4


def checked(group, spec, folder, near):
    import torch
    import torch.distributed as dist
    from torch.distributed import _symmetric_memory as symmetric

    from ep_comm.transport.symmetric import SymmetricTransport

    made = []

    def empty(size, dtype, device):
        made.append(f"{folder}/{len(made)}")
        return torch.from_file(f"{made[-1]}-{group.rank}", True, size, dtype=dtype)

    def rendezvous(tensor, over):
        dist.barrier(over)
        members, name = dist.get_process_group_ranks(over), made[-1]

        def get_buffer(rank, shape, dtype):
            return torch.from_file(f"{name}-{members[rank]}", True, shape[0], dtype=dtype)

        return SimpleNamespace(get_buffer=get_buffer, barrier=lambda: dist.barrier(over))

    class Group:
        backend, rank, size, scaleup_ranks = "gloo", group.rank, group.size, near

        def connect(self, num_bytes, capacity, timeout_s):
            ranks = range(self.size)
            return SymmetricTransport(ranks, "gloo", capacity, timeout_s, num_bytes)

    before = symmetric.empty, symmetric.rendezvous
    symmetric.empty, symmetric.rendezvous = empty, rendezvous
    try:
        return check(Group(), spec)
    finally:
        symmetric.empty, symmetric.rendezvous = before


@pytest.mark.mpi
def test_only_where_torch_has_it(pool):
    got = pool("gloo", 4).outcomes("tests.ep_comm.test_ep_symmetric:asked", [()] * 4)
    assert all("symmetric: got True, wanted False on gloo" in g.text for g in got)


def asked(group):
    from ep_comm.transport.torch_dist import TorchGroup

    TorchGroup(None, None, True)
