"""Stages of a pipeline: whole layers, what a rank holds, latency and interval."""

from __future__ import annotations

import random

import pytest

from ascendkit.budget.activations import in_flight
from ascendkit.budget.forward import segments
from ascendkit.budget.kv import kv_bytes, layer_kv
from ascendkit.budget.memory import memory
from ascendkit.budget.overlap.pipeline import Stage, simulate
from ascendkit.budget.params import held_layers, held_weights
from ascendkit.budget.plan import plan
from ascendkit.budget.stages import chunks, flow, of_rank
from ascendkit.budget.step import budget
from ascendkit.hardware import device
from ascendkit.model import layers, model
from ascendkit.model.layers import mtp_layer

DECODE = dict(phase="decode", batch=64, seq=1, context=65536, ep=64)
TRAIN = dict(phase="train", batch=1, seq=4096, ep=64, pp=16, ranks=2048, global_batch=15360)


def step(key="v3", time="curves", **config):
    m = model(key)
    return budget(m, plan({**DECODE, **config}, m), device("h200"), time)


@pytest.mark.parametrize("time", ["curves", "peak"])
@pytest.mark.parametrize(("key", "pp"), [("v3", 2), ("v3", 16), ("v3", 61), ("v4_flash", 8)])
def test_stages_hold_batches_back_and_do_not_speed_one_up(key, pp, time):
    one, many = step(key, time), step(key, time, pp=pp)
    # A token still passes every layer, and the sends between stages.
    assert one.seconds <= many.seconds < 1.1 * one.seconds
    assert many.interval >= many.seconds / pp
    assert many.rate <= one.rate * (1 + 1e-9)
    assert one.interval == one.seconds


def test_the_slowest_whole_stage_sets_the_interval(seed):
    rng = random.Random(seed)
    m = model("v3")
    for pp in (2, 4, 7, 61):
        p = plan({**DECODE, "phase": "prefill", "seq": 64, "pp": pp}, m)
        found = segments(m, p, 8)
        each = {s: rng.uniform(1, 2) for s in range(len(found))}
        by_id = {id(s): each[i] for i, s in enumerate(found)}
        got = flow(m, p, found, lambda s, by_id=by_id: by_id[id(s)])
        at = {i: each[k] for k, s in enumerate(found) for i in s.at}
        ends = {s.name: each[k] for k, s in enumerate(found)}
        stages, done = [], 0
        for i, c in enumerate(chunks(m, p)):
            assert c.layers.start == done
            done = c.layers.stop
            ends_here = ends["embedding"] * (i == 0) + ends["head"] * (i == pp - 1)
            stages.append(sum(at[j] for j in c.layers) + ends_here)
        assert done == 61
        assert got.interval == pytest.approx(max(stages))
        assert got.latency == pytest.approx(sum(stages) + (pp - 1) * ends["pipeline"])


def test_caches_hold_every_batch_in_flight():
    m = model("v3")
    for pp, most in ((1, 61), (4, 16), (16, 4)):
        p = plan({**DECODE, "pp": pp}, m)
        held = memory(m, p, segments(m, p, 8))
        assert held.kv_cache == most * pp * 64 * 65536 * 1152


def test_a_draft_layer_has_a_cache_of_its_own():
    m = model("v3")
    plans = [plan({**DECODE, "mtp": drafts}, m) for drafts in (0, 1)]
    zero, one = (memory(m, p, segments(m, p, 8)).kv_cache for p in plans)
    assert one - zero == 4831838208
    assert kv_bytes(m, mtp=True)[0] - kv_bytes(m)[0] == layer_kv(m, mtp_layer(m))[0] == 1152


def test_caches_of_layers_add_up():
    for key in ("v3", "v3_2", "v4_flash", "v4_1_flash"):
        m = model(key)
        each = [layer_kv(m, layer) for layer in layers(m)]
        assert kv_bytes(m) == (sum(t for t, _ in each), sum(f for _, f in each))


@pytest.mark.parametrize("key", ["v3", "v3_2", "v4_flash", "v4_1_flash", "v4_pro"])
@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_activations_of_inference_hold_no_cache_and_count_once(key, phase):
    m = model(key)
    config = (
        DECODE if phase == "decode" else dict(phase=phase, batch=1, seq=8192, context=32768, ep=16)
    )
    p = plan(config, m)
    (size,) = memory(m, p, segments(m, p, 8)).activations.values()
    if phase == "decode":
        # Logits of 64 tokens, or the scores an indexer leaves for the top-k.
        logits = 64 * m.vocab_size * 4
        assert size < 100e6 and size < 1.1 * max(logits, 64 * 65536 * 2)
    if (key, phase) == ("v3", "prefill"):
        # Keys and values of all heads, once, beside queries and output.
        assert size == 128 * 2 * (32768 * 320 + 8192 * (192 + 128))


def test_dualpipe_keeps_two_stages():
    m = model("v3")
    one, two = (plan({**TRAIN, "schedule": s}, m) for s in ("1f1b", "dualpipe"))
    assert of_rank(two, 3) == (3, 12) and of_rank(one, 3) == (3,)
    for rank in range(16):
        a, b = held_layers(m, one, rank), held_layers(m, two, rank)
        mirror = held_layers(m, one, 15 - rank)
        assert sorted(layer.index for layer in (*a, *mirror)) == sorted(layer.index for layer in b)
    kinds = [w.kind for w in held_weights(m, two, 0)]
    assert kinds.count("embedding") == kinds.count("head") == 1
    held = [memory(m, p, segments(m, p, 8)) for p in (one, two)]
    assert 1.6 < held[1].gradients / held[0].gradients < 2.4
    # The mirror holds the same parameters, so each keeps half of the sharded states.
    assert held[1].optimizer == pytest.approx(held[0].optimizer, rel=0.3)
    assert in_flight(two) == 17 and [in_flight(one, r) for r in (0, 15)] == [16, 1]


def test_weights_gradients_and_states_are_of_one_rank():
    m = model("v3")
    p = plan({**TRAIN, "schedule": "1f1b", "zero": 0}, m)
    held = memory(m, p, segments(m, p, 8))
    params = sum(w.params / (64 if w.shard == "ep" else 1) for w in held_weights(m, p, held.rank))
    assert held.gradients == pytest.approx(4 * params)
    assert held.optimizer == pytest.approx(12 * params)


def test_a_pair_of_unequal_chunks_is_one_forward_and_one_backward():
    # Rank 0 of two holds both stages; its pairs are F(0)+B(1) and F(1)+B(0).
    small, large = Stage(1, 2, 0, 3), Stage(10, 20, 0, 30)
    got = simulate("dualpipe", [small, large], 2, 8)
    lengths = {tuple((w.kind, w.chunk) for w in bar.slot): bar.end - bar.start for bar in got.bars}
    assert lengths[("F", 0), ("B", 1)] == pytest.approx(1 + 20)
    assert lengths[("F", 1), ("B", 0)] == pytest.approx(10 + 2)
    # Nothing overlaps, so each rank works off what its micro-batches need.
    assert got.busy == pytest.approx([4 * (1 + 2) + 4 * (10 + 20)] * 2)


def test_what_pairs_save_is_the_share_of_both_chunks():
    quick, slow = Stage(1, 2, 0, 2.4), Stage(2, 4, 0, 4.8)
    got = simulate("dualpipe", [quick, slow], 2, 8)
    pairs = [bar for bar in got.bars if len(bar.slot) == 2]
    for bar in pairs:
        f, b = (((quick, slow)[w.chunk]) for w in bar.slot)
        assert bar.end - bar.start == pytest.approx(0.8 * (f.forward + b.backward))
