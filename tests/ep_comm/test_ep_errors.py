"""Wrong calls: the same text on every rank, nothing sent, the buffer works on."""

from __future__ import annotations

import pytest
import torch

T, H, E = 16, 256, 32


def _more(right):
    return torch.cat([right["x"], right["x"][:1]])


CASES = {
    "a token too many": (
        {1: {"x": _more}}, "rank 1: x: got '17 tokens', wanted <= num_max_tokens_per_rank 16"),
    "hidden differs": (
        {2: {"x": lambda r: r["x"][:, :128].contiguous()}},
        "ranks disagree on hidden: 256 on ranks 0, 1, 3; 128 on rank 2"),
    "capacity differs": (
        {3: {"num_max_tokens_per_rank": 17}},
        "ranks disagree on num_max_tokens_per_rank: 16 on ranks 0, 1, 2; 17 on rank 3"),
    "too large for the buffer": (
        {3: {"num_max_tokens_per_rank": 1 << 20}}, "rank 3: num_bytes of the buffer: got"),
    "experts differ": (
        {0: {"num_experts": 64}}, "ranks disagree on num_experts: 64 on rank 0; 32 on ranks"),
    "experts not divided": (
        {0: {"num_experts": 33}}, "wanted a multiple of the number of ranks 4; nearest legal: 32"),
    "dtype": ({1: {"x": lambda r: r["x"].float()}}, "rank 1: x: got torch.float32"),
    "an index too large": (
        {1: {"topk_idx": lambda r: r["topk_idx"].clone().fill_(32)}},
        "topk_idx: got 32, wanted -1 to num_experts - 1 = 31; nearest legal: 31"),
    "an index below -1": (
        {1: {"topk_idx": lambda r: r["topk_idx"].clone().fill_(-2)}}, "topk_idx: got -2"),
    "an expert twice": (
        {1: {"topk_idx": lambda r: r["topk_idx"].clone().fill_(3)}},
        "expert 3 twice in token 0"),
    "int32 choices": ({1: {"topk_idx": lambda r: r["topk_idx"].int()}}, "got torch.int32"),
    "fewer choices": (
        {1: {"topk_idx": lambda r: r["topk_idx"][:-1].contiguous()}}, "as many as x, 16"),
    "strided choices": (
        {1: {"topk_idx": lambda r: r["topk_idx"].T.contiguous().T}}, "wanted contiguous"),
    "alignment zero": ({1: {"expert_alignment": 0}}, "expert_alignment: got 0, wanted 1 to"),
    "padding without expand": ({1: {"do_zero_padding": True}}, "False without do_expand"),
    "more queue pairs than allocated": (
        {1: {"num_qps": 9}}, "rank 1: num_qps: got 9, wanted 0 to 8; nearest legal: 8"),
    "a word for a switch": (
        {1: {"do_expand": "yes"}}, "rank 1: do_expand: got str, wanted a bool"),
    "a word for the sync": (
        {1: {"do_cpu_sync": "no"}}, "rank 1: do_cpu_sync: got str, wanted a bool"),
    "a negative number of SMs": ({1: {"num_sms": -2}}, "num_sms: got -2, wanted 0 to 1024"),
    "handle copy": ({1: {"do_handle_copy": True}}, "do_handle_copy: got True, wanted False"),
    "deferred without async": ({1: {"defer_epilogue": True}}, "async_with_compute_stream=True"),
    "weights of another shape": (
        {1: {"topk_weights": torch.zeros(3, 4)}}, "topk_weights: got (3, 4), wanted (16, 4)"),
    "weights on one rank only": (
        {1: {"topk_weights": torch.zeros(16, 4)}}, "ranks disagree on weights: false on ranks"),
    "layouts differ": ({2: {"do_expand": True}}, "ranks disagree on do_expand"),
    "stats of another size": (
        {0: {"cumulative_local_expert_recv_stats": torch.zeros(3, dtype=torch.int32)}},
        "got 3, wanted 8 experts"),
    "not a tensor": ({0: {"x": [1.0, 2.0, 3.0]}}, "rank 0: x: got '3 tensors'"),
    "scales of two bytes": (
        {0: {"x": lambda r: (r["x"].to(torch.float8_e4m3fn), torch.zeros(16, 2).half())}},
        "of a dtype of 4 bytes"),
    "two ranks wrong": (
        {0: {"expert_alignment": 0}, 3: {"do_handle_copy": True}},
        "rank 0: expert_alignment: got 0, wanted 1 to 65536; nearest legal: 1; rank 3: do_handle"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refused_on_every_rank(pool, name):
    changes, text = CASES[name]
    got = pool("threads", 4).run("tests.ep_comm.ranks:refused", [(changes,)] * 4)
    told = {t for t, _ in got}
    assert len(told) == 1, told
    kind, message = told.pop()
    assert kind in ("ValueError", "TypeError")
    assert text in message, message
    assert all(worked for _, worked in got)


@pytest.mark.mpi
@pytest.mark.parametrize("backend", ["mpi", "gloo"])
def test_refused_between_processes(pool, backend):
    changes = {1: {"expert_alignment": 0}}
    got = pool(backend, 4).run("tests.ep_comm.ranks:refused", [(changes,)] * 4)
    wanted = ("ValueError",
              "rank 1: expert_alignment: got 0, wanted 1 to 65536; nearest legal: 1")  # fmt: skip
    assert got == [(wanted, True)] * 4


HANDLES = {
    "two dispatches": "ranks disagree on handle of dispatch: 1 on rank 0; 2 on ranks 1, 2, 3",
    "routing beside it": "topk_idx: got 'a tensor', wanted the handle's None, or nothing",
    "another buffer": "handle: got 'one of another buffer', wanted 'one of this buffer'",
    "not a handle": "handle: got str, wanted an EPHandle that dispatch returned",
    "routing written": "rank 1: EPHandle topk_idx: got version",
    "pending": "wanted wait() first",
    "call": 'ranks disagree on call: "barrier" on rank 0; "combine" on ranks 1, 2, 3',
    "destroyed twice": "EPBuffer.destroy: got a second call, wanted one",
    "destroyed": "got a destroyed buffer, wanted a live one",
}


@pytest.mark.mpi
@pytest.mark.parametrize("backend", ["threads", "mpi"])
def test_handles(pool, backend):
    got = pool(backend, 4).run("tests.ep_comm.ranks:handles", [()] * 4)
    for name, text in HANDLES.items():
        told = {g[name][1] for g in got}
        assert len(told) == 1, (name, told)
        assert text.replace("'one of this buffer'", "one of this buffer") in told.pop(), got[0][
            name
        ]


@pytest.mark.mpi
@pytest.mark.parametrize("backend", ["threads", "gloo"])
def test_fifty_rounds_with_other_counts_each(pool, backend, seed):
    sizes = [(0, 1, 7, 96), (7,), (96, 0), (1, 0, 0, 0), (0,)]
    counts = [sizes[(seed + i) % len(sizes)] for i in range(50 if backend == "threads" else 10)]
    assert all(pool(backend, 4).run("tests.ep_comm.ranks:steps", [(counts,)] * 4))


@pytest.mark.mpi
def test_thousands_of_tokens_and_none(pool):
    counts = [(0, 1, 7, 4096), (4096, 0, 1, 7)]
    assert all(pool("mpi", 4).run("tests.ep_comm.ranks:steps", [(counts,)] * 4))


def test_a_rank_that_fails_alone_tells_its_peers(pool):
    got = pool("threads", 4).run("tests.ep_comm.ranks:raises_inside", [()] * 4)
    assert got[2][0] == "TypeError"
    for rank in (0, 1, 3):
        kind, text = got[rank]
        assert kind == "PeerFailed" and "rank 2 in combine: TypeError" in text, got


def test_what_a_careless_caller_does(pool):
    got = pool("threads", 2).run("tests.ep_comm.test_ep_errors:careless", [()] * 2)
    assert got[0] == got[1]
    assert got[0]["gradients"] is True
    assert "previous_event: the work behind it failed: lost" in got[0]["a failed event"][1]
    assert "rank 1: AttributeError" in got[0]["a strange object"][1]
    assert "its rows are gone" in got[0]["a late wait"][1]
    assert got[0]["text for a size"][0] == "TypeError"
    assert got[0]["its own memory"] is True


def careless(group):
    from ep_comm.buffer import EPBuffer
    from ep_comm.event import EventOverlap
    from tests.ep_comm.ranks import buffer, text_of, tokens

    class Failed:
        def wait(self):
            raise OSError("lost")

    class Strange(torch.Tensor):
        @property
        def dtype(self):
            raise AttributeError("no dtype here")

    b = buffer(group)
    x, idx = tokens(group)
    found = {}
    x.requires_grad_()
    got = b.dispatch(x, idx, num_experts=E)
    y = got[0].detach().clone().requires_grad_()
    found["gradients"] = not b.combine(y, got[3])[0].requires_grad
    before = [got[0].clone(), got[3].recv_src_metadata.clone(), got[3].placement.src.clone()]
    x2, idx2 = tokens(group, seed=9)
    b.dispatch(x2, idx2, num_experts=E)
    after = [got[0], got[3].recv_src_metadata, got[3].placement.src]
    found["its own memory"] = all(torch.equal(p, q) for p, q in zip(before, after))
    event = EventOverlap(Failed() if group.rank == 0 else None)
    found["a failed event"] = text_of(
        lambda: b.dispatch(
            x, idx, num_experts=E, previous_event=event, allocate_on_comm_stream=True
        )
    )
    odd = x2.as_subclass(Strange) if group.rank == 1 else x2
    found["a strange object"] = text_of(lambda: b.dispatch(odd, idx2, num_experts=E))
    late = b.dispatch(x2, idx2, num_experts=E, async_with_compute_stream=True,
                      defer_epilogue=True)  # fmt: skip
    b.destroy()
    found["a late wait"] = text_of(late.wait)
    found["text for a size"] = text_of(lambda: EPBuffer(group, None, "16", H))
    return found
