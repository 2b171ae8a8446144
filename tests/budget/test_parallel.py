"""Tensor, context and data parallelism: who holds, who sends, who has most."""

from __future__ import annotations

import random

import pytest

from ascendkit.budget.forward import forward
from ascendkit.budget.params import local_params
from ascendkit.budget.plan import plan
from ascendkit.model import layers, model


def calls(key="v3", scaleup=8, **config):
    m = model(key)
    return forward(m, plan(config, m), scaleup)


@pytest.mark.parametrize(
    ("batch", "tp", "rows"), [(65, 2, 33), (64, 2, 32), (1, 8, 1), (129, 4, 33)]
)
def test_the_fullest_rank_routes_the_odd_token(batch, tp, rows):
    config = dict(phase="decode", batch=batch, seq=1, context=4096, ep=8, tp=tp, ranks=8)
    sent = [c for c in calls(**config) if c.op in ("ep_comm.dispatch", "ep_comm.combine")]
    assert {c.params["num_tokens"] for c in sent} == {rows}
    shared = [c for c in calls(**config) if c.label == "shared expert"]
    assert {c.params["m"] for c in shared} == {rows}


def test_experts_receive_what_was_sent_in_all():
    """Eight ranks of one tensor-parallel group share a single token; it has eight experts."""
    config = dict(phase="decode", batch=1, seq=1, context=4096, ep=8, tp=8, ranks=8)
    got = next(c for c in calls(**config) if c.op == "gemm_mad.grouped")
    assert got.params["rows"] == 1.0
    assert got.params["touched"] == pytest.approx(1.0)


def test_replicas_include_context_parallel_ranks(seed):
    rng = random.Random(seed)
    m = model("v3")
    for _ in range(20):
        tp, cp, dp = rng.choice([1, 2, 4]), rng.choice([1, 2, 4]), rng.choice([2, 4, 8])
        ep = rng.choice([e for e in (1, 2, 4, 8) if tp * cp * dp % e == 0])
        ranks = 2 * tp * cp * dp
        p = plan(dict(phase="train", batch=1, seq=1024, tp=tp, cp=cp, pp=2, ep=ep, ranks=ranks,
                      global_batch=8 * dp), m)  # fmt: skip
        (_, _, dense), (_, _, experts) = local_params(m, p, 0)
        # A parameter exists as often as the ranks of a stage, over the ranks that split it.
        assert dense * tp == ranks // 2
        assert experts * ep == ranks // 2


@pytest.mark.parametrize("key", ["v3", "v3_2", "v4_flash", "v4_pro", "v4_1_flash", "tiny"])
def test_context_parallel_ranks_exchange_what_layers_write(key):
    m = model(key)
    seq, cp = 4096, 4
    found = calls(key, phase="prefill", batch=2, seq=seq, context=seq, ep=8, cp=cp)
    gathers = [c for c in found if c.op == "ep_comm.all_gather"]
    per_token = {
        "mla": m.kv_entry_bytes, "dsa": m.kv_entry_bytes + m.index_key_bytes,
        "csa": m.kv_entry_bytes + m.index_key_bytes, "hca": m.kv_entry_bytes,
        "full": m.kv_entry_bytes + m.index_key_bytes,
        "candidate": m.kv_entry_bytes + m.index_key_bytes,
    }  # fmt: skip
    writers = [layer for layer in layers(m) if layer.role in per_token]
    assert sum(c.count for c in gathers) == len(writers)
    want = sum(2 * seq * per_token[w.role] / max(w.ratio, 1) for w in writers)
    assert sum(c.count * c.params["num_values"] * 2 for c in gathers) == pytest.approx(want)
    tails = [c for c in found if c.label == "context-parallel window"]
    windowed = [layer for layer in layers(m) if layer.role not in ("mla", "dsa")]
    assert sum(c.count for c in tails) == len(windowed)
    for c in tails:
        assert c.params["num_values"] * 2 == 2 * m.sliding_window * m.window_entry_bytes


def test_gathered_entries_bring_gradients_back():
    from ascendkit.budget.backward import backward

    found = calls(phase="train", batch=1, seq=4096, ep=8, cp=4, ranks=8)
    back = [c for c in backward(found, "none") if c.op == "ep_comm.reduce_scatter"]
    ahead = [c for c in found if c.op == "ep_comm.all_gather"]
    assert sum(c.count for c in back) == sum(c.count for c in ahead) == 61
