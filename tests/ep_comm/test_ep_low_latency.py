"""Low-latency calls: blocks of rows, counts, weights at the token, receive hooks."""

from __future__ import annotations

import pytest
import torch

from ascendkit.testing import calc_diff, routing
from ep_comm.low_latency import cast_to_fp8, low_latency_combine, low_latency_dispatch


@pytest.mark.parametrize("hook", [False, True])
@pytest.mark.parametrize("fp8", [False, True])
def test_round_trip(pool, fp8, hook, seed):
    got = pool("threads", 4).run(
        "tests.ep_comm.test_ep_low_latency:round_trip", [(fp8, hook, seed)] * 4
    )
    assert got == [""] * 4


def round_trip(group, fp8, hook, seed):
    from ep_comm.buffer import EPBuffer

    most, hidden, k, experts = 8, 256, 3, 8
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
    out, counts, handle, _, receive = low_latency_dispatch(
        b, x, idx, most, experts, use_fp8=fp8, return_recv_hook=hook
    )
    if hook:
        assert counts.sum() == 0
        receive()
    codes, scales = out if fp8 else (out, None)
    if codes.shape != (share, group.size * most, hidden):
        return f"shape {tuple(codes.shape)}"
    for e in range(share):
        mine = group.rank * share + e
        want = torch.cat([x2[(idx2 == mine).any(1)] for x2, idx2, _ in every])
        if int(counts[e]) != len(want):
            return f"count {counts[e]} of expert {mine}, wanted {len(want)}"
        got = codes[e, : len(want)]
        if fp8:
            want, sf = cast_to_fp8(want)
            if not torch.equal(scales[e, : len(want)], sf) or scales.stride(1) != 1:
                return "scales"
        if not torch.equal(got.view(torch.uint8), want.view(torch.uint8)):
            return f"rows of expert {mine}"
    y = codes.float() * scales.repeat_interleave(128, 2) if fp8 else codes.float()
    y = torch.nan_to_num(y).bfloat16() * 2
    combined, _, last = low_latency_combine(b, y, idx, w, handle, return_recv_hook=hook)
    if hook:
        last()
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
    low_latency_combine(b, late[0], idx, w, late[2])
    b.destroy()
    reducing.destroy()
    return found


def test_scales_may_be_powers_of_two(seed):
    x = torch.randn(7, 256, generator=torch.Generator().manual_seed(seed)).bfloat16()
    codes, scales = cast_to_fp8(x, round_scale=True)
    assert torch.equal(torch.frexp(scales).mantissa, torch.full_like(scales, 0.5))
    assert calc_diff((codes.float().view(7, 2, 128) * scales[..., None]).view(7, 256), x) < 1e-3
