"""Low-latency calls: blocks of rows, counts, weights at the token, receive hooks."""

from __future__ import annotations

import pytest
import torch

from ascendkit.testing import calc_diff, routing
from ep_comm.fp8 import cast_to_fp8
from ep_comm.low_latency import low_latency_combine, low_latency_dispatch


@pytest.mark.mpi
@pytest.mark.parametrize("end", ["", "async_finish", "return_recv_hook"])
@pytest.mark.parametrize("form", ["bf16", "fp8", "ue8m0"])
def test_round_trip(pool, form, end, seed):
    # All on threads; between processes one of each.
    backends = ["threads"]
    backends += ["mpi"] if (form, end) == ("ue8m0", "async_finish") else []
    backends += ["gloo"] if (form, end) == ("fp8", "return_recv_hook") else []
    for backend in backends:
        got = pool(backend, 4).run(
            "tests.ep_comm.test_ep_low_latency:round_trip", [(form, end, seed)] * 4
        )
        assert got == [""] * 4, backend


def unpacked(scales):
    """int32 [..., S/4] of four exponents each as float32 [..., S]."""
    parts = [2.0 ** ((scales >> 8 * i & 255) - 127) for i in range(4)]
    return torch.stack(parts, -1).flatten(-2)


def round_trip(group, form, end, seed):
    from ep_comm.buffer import EPBuffer
    from ep_comm.low_latency import next_combine_buffer

    most, hidden, k, experts = 8, 512, 3, 8
    fp8, ends = form != "bf16", {end: True} if end else {}
    forms = {"use_fp8": fp8, "round_scale": form == "ue8m0", "use_ue8m0": form == "ue8m0"}
    share = experts // group.size
    every = []
    for rank in range(group.size):
        g = torch.Generator().manual_seed(seed % 99991 + rank)
        x = torch.randn(5 + rank, hidden, generator=g).bfloat16()
        idx = routing("uniform", 5 + rank, k, experts, seed + rank).contiguous()
        every.append((x, idx, torch.rand(5 + rank, k, generator=g)))
    x, idx, w = every[group.rank]
    b = EPBuffer(group, None, most, hidden, k, allow_multiple_reduction=False,
                 explicitly_destroy=True)  # fmt: skip
    out, counts, handle, event, receive = low_latency_dispatch(
        b, x, idx, most, experts, **forms, **ends
    )
    assert (receive is not None) == (end == "return_recv_hook")
    if end:
        assert counts.sum() == 0
        receive() if receive else event.wait()
    codes, scales = out if fp8 else (out, None)
    if form == "ue8m0":
        assert scales.dtype == torch.int32 and scales.shape[-1] == hidden // 512
        scales = unpacked(scales)
    elif fp8:
        assert scales.stride(1) == 1
    if codes.shape != (share, group.size * most, hidden):
        return f"shape {tuple(codes.shape)}"
    for e in range(share):
        mine = group.rank * share + e
        want = torch.cat([x2[(idx2 == mine).any(1)] for x2, idx2, _ in every])
        if int(counts[e]) != len(want):
            return f"count {counts[e]} of expert {mine}, wanted {len(want)}"
        got = codes[e, : len(want)]
        if fp8:
            want, sf = cast_to_fp8(want, form == "ue8m0")
            if not torch.equal(scales[e, : len(want)], sf):
                return "scales"
        if not torch.equal(got.view(torch.uint8), want.view(torch.uint8)):
            return f"rows of expert {mine}"
    y = codes.float() * scales.repeat_interleave(128, 2) if fp8 else codes.float()
    y = torch.nan_to_num(y).bfloat16() * 2
    place = next_combine_buffer(handle)
    assert place is next_combine_buffer(handle)
    combined, event, last = low_latency_combine(b, place.copy_(y), idx, w, handle,
                                                zero_copy=True, **ends)  # fmt: skip
    if end:
        last() if last else event.wait()
    want = (2 * x.float()[:, None] * w[..., None]).sum(1)
    b.destroy()
    diff = calc_diff(combined.float(), want)
    return "" if diff < (7e-4 if fp8 else 1e-5) else f"difference {diff}"


def test_refusals(pool):
    got = pool("threads", 2).run("tests.ep_comm.test_ep_low_latency:refused", [()] * 2)
    assert got[0] == got[1]
    assert "wanted False for low-latency calls" in got[0]["reducing buffer"][1]
    assert "num_max_tokens_per_rank 8" in got[0]["too many tokens"][1]
    assert "the receive hook called first" in got[0]["before the hook"][1]
    for name, text in {
        "both ends": "rank 0: async_finish: got True, wanted False beside return_recv_hook",
        "exponents alone": "rank 1: use_ue8m0: got True, wanted False without use_fp8",
        "exponents in fours": "rank 1: hidden: got 128, wanted a multiple of 512; nearest",
        "waits of another shape": "dispatch_wait_recv_cost_stats: got (2,), wanted 2 dimensions",
        "scales differ": "ranks disagree on round_scale: false on rank 0; true on rank 1",
        "a format of logarithms": "rank 1: use_logfmt: got True, wanted False",
        "out of another type": "rank 1: out: got torch.float32, wanted torch.bfloat16",
        "out of another shape": "rank 1: out: got (7, 128), wanted (8, 128)",
        "no weights": "rank 1: topk_weights: got NoneType, wanted float32",
        "not a handle": "rank 1: handle: got str, wanted what low_latency_dispatch returned",
        "rows of another shape": "rank 1: x: got (2, 7, 128), wanted (2, 16, 128)",
        "not the buffer": "wanted x from next_combine_buffer beside it",
    }.items():
        assert text in got[0][name][1], (name, got[0][name])


def refused(group):
    from ep_comm.buffer import EPBuffer
    from tests.ep_comm.ranks import text_of

    found = {}
    x = torch.randn(8, 128).bfloat16()
    idx = routing("uniform", 8, 2, 4, group.rank).contiguous()
    w = torch.rand(8, 2)
    b = EPBuffer(group, None, 8, 128, 2, allow_multiple_reduction=False, explicitly_destroy=True)
    reducing = EPBuffer(group, None, 8, 128, 2, explicitly_destroy=True)
    out = low_latency_dispatch(reducing, x, idx, 8, 4, use_fp8=False)
    found["reducing buffer"] = text_of(
        lambda: low_latency_combine(reducing, out[0], idx, w, out[2])
    )
    nine = torch.randn(9, 128).bfloat16() if group.rank else x
    nine_idx = routing("uniform", len(nine), 2, 4, 1).contiguous()
    found["too many tokens"] = text_of(lambda: low_latency_dispatch(b, nine, nine_idx, 8, 4))
    late = low_latency_dispatch(b, x, idx, 8, 4, use_fp8=False, return_recv_hook=True)
    found["before the hook"] = text_of(lambda: low_latency_combine(b, late[0], idx, w, late[2]))
    late[4]()

    def dispatch(**options):
        return text_of(lambda: low_latency_dispatch(b, x, idx, 8, 4, **options))

    def combine(y=late[0], weights=w, handle=late[2], **options):
        return text_of(lambda: low_latency_combine(b, y, idx, weights, handle, **options))

    one = group.rank == 1
    found["both ends"] = dispatch(async_finish=True, return_recv_hook=True)
    found["exponents alone"] = dispatch(use_ue8m0=one)
    found["exponents in fours"] = dispatch(use_ue8m0=one, round_scale=True)
    found["waits of another shape"] = dispatch(
        dispatch_wait_recv_cost_stats=torch.zeros(2, dtype=torch.int64) if one else None
    )
    found["scales differ"] = dispatch(round_scale=one)
    found["a format of logarithms"] = combine(use_logfmt=one)
    found["out of another type"] = combine(out=torch.zeros(8, 128) if one else None)
    found["out of another shape"] = combine(out=x[:7].contiguous() if one else None)
    found["no weights"] = combine(weights=None if one else w)
    found["not a handle"] = combine(handle="handle" if one else late[2])
    found["rows of another shape"] = combine(y=late[0][:, :7].contiguous() if one else late[0])
    found["not the buffer"] = combine(zero_copy=one)
    low_latency_combine(b, late[0], idx, w, late[2])
    b.destroy()
    reducing.destroy()
    return found


def test_scales_may_be_powers_of_two(seed):
    x = torch.randn(7, 256, generator=torch.Generator().manual_seed(seed)).bfloat16()
    codes, scales = cast_to_fp8(x, round_scale=True)
    assert torch.equal(torch.frexp(scales).mantissa, torch.full_like(scales, 0.5))
    assert calc_diff((codes.float().view(7, 2, 128) * scales[..., None]).view(7, 256), x) < 1e-3


@pytest.mark.mpi
@pytest.mark.parametrize("backend", ["threads", "mpi", "gloo"])
def test_waits_name_the_rank_that_was_late(pool, backend):
    got = pool(backend, 4).run("tests.ep_comm.test_ep_low_latency:late_rank", [()] * 4)
    if backend == "gloo":
        assert all("wanted None on gloo, rows of all ranks at once" in g for g in got)
        return
    for rank in (0, 2, 3):
        for stats in got[rank]:
            others = stats.clone()
            others[rank] = 0
            assert int(others.abs().sum()) == 0 and int(stats[rank, rank]) == 7
            assert 100_000 < int(stats[rank, 1]) - 7 < 5_000_000, stats
    assert all(int(stats[1, 0]) < int(got[0][i][0, 1]) for i, stats in enumerate(got[1]))


def late_rank(group):
    """Rank 1 writes its rows 0.3 s after the others, out and back."""
    import time

    from ep_comm.buffer import EPBuffer
    from tests.ep_comm.ranks import text_of

    x = torch.randn(4, 128).bfloat16()
    idx = routing("uniform", 4, 2, 8, group.rank).contiguous()
    b = EPBuffer(group, None, 4, 128, 2, allow_multiple_reduction=False, explicitly_destroy=True)
    sent = torch.zeros(4, 4, dtype=torch.int64)
    sent[group.rank] = 7
    back = sent.clone()

    def dispatch():
        return low_latency_dispatch(
            b, x, idx, 4, 8, use_fp8=False, dispatch_wait_recv_cost_stats=sent
        )

    if group.backend == "gloo":
        told = text_of(dispatch)[1]
        b.destroy()
        return told
    whole = b.grid.whole
    right = whole.exchange

    def late(*args):
        time.sleep(0.3 if group.rank == 1 else 0.0)
        return right(*args)

    whole.exchange = late
    y, _, handle, _, _ = dispatch()
    w = torch.ones(4, 2)
    low_latency_combine(b, y, idx, w, handle, combine_wait_recv_cost_stats=back)
    b.destroy()
    return sent, back
