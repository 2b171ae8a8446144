"""The operator walk against counts that do not come from it."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from ascendkit.budget.attended import attended
from ascendkit.budget.flops import Convention, active_params, attention_flops, decode_flops
from ascendkit.budget.forward import forward, segments
from ascendkit.budget.kv import kv_bytes
from ascendkit.budget.memory import memory
from ascendkit.budget.params import local_params
from ascendkit.budget.plan import plan
from ascendkit.budget.step import budget
from ascendkit.hardware import device
from ascendkit.model import layers, model

ALL = Convention(router=True, streams=True)


def counted(key, **config):
    m = model(key)
    p = plan(config, m)
    return m, p, forward(m, p, scaleup_ranks=10**6)


def matrix_flops(calls):
    return sum(
        c.count * v for c in calls for (unit, _), v in c.cost.flops().items() if unit == "cube"
    )


@pytest.mark.parametrize("key", ["v3", "v4_flash", "v4_pro", "v4_1_flash", "tiny", "nano"])
def test_training_walk_equals_closed_form(key):
    """Operators added up equal 2 x parameters + attention, to the last product."""
    seq = 4096
    m, p, calls = counted(key, phase="train", batch=1, seq=seq, ep=4, ranks=4)
    got = matrix_flops(calls) / p.tokens
    attention = attention_flops(m, seq, ALL)
    if m.family == "mla":
        # The closed form takes half the square; the walk counts the diagonal too.
        attention *= (seq + 1) / seq
    want = 2 * active_params(m, ALL) + attention
    if m.hc_mult:
        want += 2 * m.hc_mult**2 * m.hidden_size  # the head's own mixes
    assert got == pytest.approx(want, rel=2e-5)


@pytest.mark.parametrize("key", ["v3", "v3_2", "v4_flash", "v4_pro", "v4_1_flash"])
def test_decode_walk_equals_closed_form(key):
    m, p, calls = counted(key, phase="decode", batch=8, seq=1, context=131072, ep=8)
    got = matrix_flops(calls) / p.tokens
    want = decode_flops(m, 131072)
    if m.hc_mult:
        mixes = m.hc_mult**2 + 2 * m.hc_mult
        want += 2 * m.hc_mult * m.hidden_size * (2 * mixes * m.num_hidden_layers + m.hc_mult)
    assert got == pytest.approx(want, rel=1e-9)


# One V4.1 decode step, EP 64, T = B = 64, S = 65536: (GFLOP, MB of HBM, MB on links), recomputed
# by hand from the layer formulas. Weights there carry FP8 scales per 32 values (3 % more bytes).
BY_HAND = {
    "expert GEMMs": (1087, 4929, 0),
    "attention": (206, 867, 0),
    "W_o_b": (215, 1778, 0),
    "combine": (0, 184, 150),
    "shared expert": (181, 1529, 0),
    "LM head": (85, 1358, 0),
    "indexer logits": (120, 1029, 0),
    "W_o_a": (172, 1513, 0),
}


def test_decode_step_by_hand():
    _, _, calls = counted("v4_1_flash", phase="decode", batch=64, seq=1, context=65536, ep=64)
    got = defaultdict(lambda: [0.0, 0.0, 0.0])
    for c in calls:
        got[c.label][0] += matrix_flops([c]) / 1e9
        got[c.label][1] += c.count * c.cost.minimum_bytes() / 1e6
        got[c.label][2] += c.count * sum(c.cost.link_bytes().values()) / 1e6
    for label, want in BY_HAND.items():
        assert got[label] == pytest.approx(want, rel=0.03, abs=0.5), label
    total = [sum(v[i] for v in got.values()) for i in range(3)]
    assert total == pytest.approx((2392, 17604, 228), rel=0.02)


def test_prefill_runs_only_the_encoder():
    _, p, calls = counted("v4_1_flash", phase="prefill", batch=1, seq=8192, context=32768, ep=16)
    per_token = matrix_flops(calls) / p.tokens / 1e9
    # By hand, encoder half only: 17.7; the truncated decoder adds 140 of 8192 tokens.
    assert 17.7 < per_token < 18.4


def test_tensor_parallel_splits_and_adds_nothing():
    one = matrix_flops(counted("v4_flash", phase="prefill", batch=1, seq=512, ep=8)[2])
    eight = matrix_flops(counted("v4_flash", phase="prefill", batch=1, seq=512, ep=8, tp=8)[2])

    assert one / 8 < eight < one


@pytest.mark.parametrize("key", ["v3", "v4_flash", "v4_1_flash"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_more_work_is_never_cheaper(key, phase, seed):
    rng = random.Random(seed)
    base = dict(phase=phase, batch=rng.randint(1, 32), seq=1, context=0, ep=8)
    if phase == "prefill":
        base |= dict(seq=rng.choice([128, 1024]), batch=1)
    base["context"] = base["seq"] + rng.randint(64, 32768)
    m = model(key)
    before = budget(m, plan(dict(base), m), device("h200"))
    for name, factor in (("batch", 2), ("context", 3)):
        grown = {**base, name: base[name] * factor}
        after = budget(m, plan(grown, m), device("h200"))
        assert after.seconds >= before.seconds, (name, base)
        assert after.memory.total >= before.memory.total, (name, base)


def test_expert_bytes_cover_the_experts_touched():
    _, _, calls = counted("v4_flash", phase="decode", batch=1, seq=1, context=1024, ep=1)
    weights = [c for c in calls if c.op == "gemm_mad.grouped"]
    touched = weights[0].cost.params["touched"]
    assert touched == pytest.approx(6)  # one token, six experts, all on this rank
    up = weights[0].cost
    assert up.minimum_bytes() >= touched * up.params["n"] * up.params["k"] * 0.53125


@pytest.mark.parametrize(("schedule", "copies"), [("1f1b", 1), ("dualpipe", 2)])
def test_local_parameters_add_up_to_the_model(schedule, copies):
    m = model("v3")
    p = plan(
        dict(phase="train", batch=1, seq=4096, ep=64, pp=16, ranks=2048, global_batch=15360,
             schedule=schedule), m
    )  # fmt: skip
    found = [local_params(m, p, rank) for rank in range(16)]
    assert {(a[2], b[2]) for a, b in found} == {(128 * copies, 2 * copies)}
    total = sum(dense[1] + experts[1] * 64 for dense, experts in found)
    assert total == pytest.approx(copies * 671_025_397_760, rel=1e-6)


def test_cache_of_a_sequence():
    m, p, _ = counted("v4_1_flash", phase="decode", batch=64, seq=1, context=65536, ep=64)
    held = memory(m, p, segments(m, p, 10**6))
    assert kv_bytes(m) == (890.0, 40 * 128 * 528)
    assert held.kv_cache == 64 * (890 * 65536 + 40 * 128 * 528)


@pytest.mark.parametrize(("ratio", "cap"), [(1, None), (1, 128), (2, 512), (4, 7), (128, None)])
def test_attended_against_a_loop(ratio, cap, seed):
    rng = random.Random(seed)
    context = rng.randint(1, 3000)
    new = rng.randint(1, context)
    positions = range(context - new + 1, context + 1)
    want = sum(min(cap or 10**9, p // ratio) for p in positions) / new
    assert attended(context, new, ratio, cap) == pytest.approx(want)


def test_layer_roles_of_v4_1():
    roles = [layer.role for layer in layers(model("v4_1_flash"))]
    assert [i for i, r in enumerate(roles) if r == "swa"] == [0, 1]
    assert [i for i, r in enumerate(roles) if r == "full"] == [2, 8, 14]
    assert [i for i, r in enumerate(roles) if r == "candidate"] == [20]
    assert [i for i, r in enumerate(roles) if r == "reindex"] == [24, 28, 32, 36]
    assert {layer.role for layer in layers(model("tiny"))} == {
        "swa", "full", "reuse", "candidate", "reindex"
    }  # fmt: skip
