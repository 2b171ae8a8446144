"""Gradients through dispatch and combine, and a layer that trains."""

from __future__ import annotations

import torch


def test_gradients_are_those_of_the_whole(pool, seed):
    got = pool("threads", 4).run("tests.ep_comm.test_ep_autograd:compared", [(seed,)] * 4)
    assert max(got) < 0.02, got


def compared(group, seed):
    """Largest relative difference from the same layer computed in one place, in float32."""
    from ascendkit.testing import routing
    from ep_comm.buffer import EPBuffer
    from ep_comm.combine import combine
    from ep_comm.dispatch import dispatch

    t, hidden, k, experts = 12, 64, 3, 8
    g = torch.Generator().manual_seed(seed % 1000 + group.rank)
    x = torch.randn(t, hidden, generator=g).bfloat16().requires_grad_()
    idx = routing("uniform", t, k, experts, seed + group.rank).contiguous()
    w = torch.rand(t, k, generator=g).requires_grad_()
    scale = torch.randn(experts, hidden, generator=torch.Generator().manual_seed(7))
    up = torch.randn(t, hidden, generator=g).bfloat16()
    b = EPBuffer(group, None, t, hidden, k, explicitly_destroy=True)
    rows, _, row_w, h = dispatch(x, idx, w, buffer=b, num_experts=experts, do_expand=True,
                                 expert_alignment=4)  # fmt: skip
    share = experts // group.size
    mine = scale[group.rank * share : (group.rank + 1) * share]
    each = mine.repeat_interleave(torch.tensor(h.num_recv_tokens_per_expert_list), 0)
    out = combine((rows.float() * each * row_w[:, None]).bfloat16(), h, buffer=b)
    out.backward(up)
    b.destroy()
    x2 = x.detach().float().requires_grad_()
    w2 = w.detach().clone().requires_grad_()
    want = (x2[:, None] * scale[idx] * w2[..., None]).sum(1)
    want.backward(up.float())
    pairs = ((out, want), (x.grad, x2.grad), (w.grad, w2.grad))
    return max(float(((a.float() - c).norm() / c.norm()).detach()) for a, c in pairs)


def test_a_layer_learns(pool, seed):
    losses = pool("threads", 2).run("tests.ep_comm.test_ep_autograd:trained", [(seed,)] * 2)
    for first, last in losses:
        assert last < 0.7 * first, losses


def trained(group, seed):
    from ep_comm import EPBuffer, MoELayer

    # Every rank initialises alike where parameters are shared: the gate.
    b = EPBuffer(group, None, 32, 64, 2, explicitly_destroy=True)
    made = torch.Generator().manual_seed(seed)
    layer = MoELayer(b, 64, 32, 8, 2, expert_alignment=4)
    with torch.no_grad():
        layer.gate.copy_(torch.randn(8, 64, generator=made) * 0.125)
        own = torch.Generator().manual_seed(seed + 1 + group.rank)
        layer.up.copy_(torch.randn(layer.up.shape, generator=own) * 0.125)
        layer.down.copy_(torch.randn(layer.down.shape, generator=own) * 0.18)
    x = torch.randn(32, 64, generator=own).bfloat16()
    target = torch.randn(32, 64, generator=own) * 0.3
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = (layer(x).float() - target).square().mean()
        loss.backward()
        assert layer.gate.grad.abs().sum() > 0
        optimizer.step()
        losses.append(loss.item())
    b.destroy()
    return losses[0], losses[-1]
