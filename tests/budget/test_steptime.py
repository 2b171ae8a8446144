"""Whole steps in time: what must grow, what must shrink, what must add up."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendkit.budget.call import Call
from ascendkit.budget.plan import plan
from ascendkit.budget.roofline import roofline
from ascendkit.budget.skew import load
from ascendkit.budget.step import budget
from ascendkit.hardware import device
from ascendkit.model import model
from ascendkit.model.config import with_formats


def step(key="v4_flash", on="h200", time="curves", **config):
    m = model(key)
    base = dict(phase="decode", batch=16, seq=1, context=8192, ep=8)
    return budget(m, plan({**base, **config}, m), device(on), time)


@pytest.mark.parametrize("on", ["h200", "b200", "ascend_950dt", "ascend_910c_die"])
@pytest.mark.parametrize("key", ["v3", "v4_flash", "v4_1_flash"])
def test_more_tokens_and_more_context_take_longer(key, on, seed):
    rng = random.Random(seed)
    batch, context = rng.randint(1, 64), rng.randint(2048, 32768)
    times = [step(key, on, batch=batch * f, context=context).serial for f in (1, 2, 3, 8)]
    assert times == sorted(times)
    times = [step(key, on, batch=batch, context=context * f).serial for f in (1, 2, 4)]
    assert times == sorted(times)


def test_more_ranks_send_more(seed):
    links = [sum(sum(ln.link.values()) for ln in step(ep=ep, ranks=64).lines) for ep in (2, 8, 64)]
    assert links == sorted(links)


@pytest.mark.parametrize("phase", ["decode", "prefill", "train"])
def test_overlap_lies_between_the_longest_chain_and_the_sum(phase):
    config = dict(phase=phase, seq=2048, context=2048, batch=2) if phase != "decode" else {}
    if phase == "train":
        config |= dict(pp=2, ranks=16, global_batch=64)
    chain, auto, every = (step(overlap=o, **config) for o in ("none", "auto", "all"))
    # Kernels that contend for a link can make a parallel order a little worse than the serial one.
    assert every.seconds <= auto.seconds * 1.02 <= chain.seconds * 1.05
    if phase != "train":
        assert chain.seconds == pytest.approx(chain.serial, rel=0.2)
    assert sum(p.seconds for p in auto.time.parts) == pytest.approx(auto.seconds)


def test_two_micro_batches_hide_communication():
    big = dict(phase="prefill", batch=4, seq=4096, context=4096, ep=32)
    one, two = (step("v3", "h800", interleave=i, **big) for i in (1, 2))
    assert two.seconds < one.seconds < 2 * two.seconds


def test_drafts_cost_a_host_gap_of_the_calibrated_stack():
    from ascendkit.budget.curves.lookup import Stack
    from ascendkit.budget.gap import graph_gap

    gap = graph_gap("ascend_950dt", Stack("decode"))
    assert gap.seconds >= 0 and gap.source.endswith("a3_v4f_950dt_16_8k")
    assert graph_gap("h200", Stack("decode")).seconds == 0
    held = graph_gap("ascend_950dt", Stack("decode", without=("a3_v4f_950dt_16_8k",)))
    assert held.seconds == 0


def test_bands_and_marks():
    got = step("v3")
    assert got.time.quantile(-1.28) < got.seconds < got.time.quantile(1.28)
    assert sum(got.time.shares.values()) == pytest.approx(1)
    assert got.time.claimed
    far = step(on="ascend_950dt")
    assert not far.time.claimed
    assert any("not claimed" in w for w in far.warnings)


def test_the_busiest_resource_binds():
    got = step("v3", phase="prefill", batch=1, seq=4096, context=4096)
    assert set(got.busy) >= {"cube", "hbm", "scaleup", "launch"}
    assert all(v >= 0 for v in got.busy.values())
    bound = step("v3", time="peak", phase="prefill", batch=1, seq=4096, context=4096)
    assert max(bound.busy.values()) <= 1 and "launch" not in bound.busy


def test_skew_is_decided_by_the_fullest_rank(seed):
    busy = dict(phase="prefill", batch=1, seq=4096, context=4096)
    assert step(routing="zipf:1.0", **busy).seconds > step(**busy).seconds
    # One decoded token a sequence: skew leaves more experts untouched, and their weights unread.
    assert load("zipf:1", 256, 6, 8, 128).touched < load("balanced", 256, 6, 8, 128).touched
    even = load([1.0] * 256, 256, 8, 8, 1000)
    assert even.factor == pytest.approx(1)
    rng = random.Random(seed)
    got = load([rng.random() for _ in range(256)], 256, 8, 8, 1000)
    assert 1 <= got.factor <= 8 and got.touched <= 32
    assert load("zipf:0", 256, 8, 32, 10**6).factor == pytest.approx(1)
    assert load("balanced", 256, 8, 32, 10**6).touched == pytest.approx(8)


def test_no_token_chooses_an_expert_twice():
    one_hot = [1.0] + [1e-9] * 255
    got = load(one_hot, 256, 8, 256, 1000)
    # The favourite takes one of eight choices, not all of them.
    assert got.factor == pytest.approx(256 / 8)


def test_context_parallel_splits_tokens_and_keeps_work():
    one = step("v3", phase="prefill", batch=1, seq=8192, context=8192, ep=8)
    four = step("v3", phase="prefill", batch=1, seq=8192, context=8192, ep=8, cp=4, ranks=8)
    by_label = {ln.label: ln for ln in four.lines}
    attention = next(ln for ln in one.lines if ln.label == "attention")
    assert by_label["attention"].flops["cube.bf16"] * 4 == pytest.approx(
        attention.flops["cube.bf16"]
    )
    assert by_label["context-parallel all-gather"].link
    assert four.tokens == 2 * 8192 and four.plan.dp == 2


@pytest.mark.parametrize("factor", [1.2, 0.5])
def test_what_if_moves_what_it_names(factor):
    m = model("v3")
    p = plan(dict(phase="decode", batch=16, seq=1, context=8192, ep=8), m)
    on = device("h200")
    before, after = budget(m, p, on, "peak"), budget(m, p, on.scaled(hbm=factor), "peak")
    for a, b in zip(
        sorted(before.lines, key=lambda ln: ln.label),
        sorted(after.lines, key=lambda ln: ln.label),
        strict=True,
    ):
        assert b.resource_s["hbm"] == pytest.approx(a.resource_s["hbm"] / factor)
    assert (after.seconds < before.seconds) == (factor > 1)


@settings(max_examples=40)
@given(
    st.integers(1, 4096), st.integers(16, 8192), st.integers(16, 8192),
    st.floats(0.25, 8), st.sampled_from(["h200", "b200", "ascend_950dt"]),
)  # fmt: skip
def test_units_a_faster_machine_is_faster_by_that_factor(m, n, k, factor, key):
    """Seconds are work over rate: scale every rate and every time scales with it."""
    on = device(key)
    rates = dict.fromkeys(("hbm", "l2", "cube", "vector", "scaleup", "scaleout"), factor)
    call = Call("", "gemm_mad.gemm", dict(m=m, n=n, k=k, a="fp8_1x128", b="fp8_128x128"))
    slow, fast = roofline(call.cost, on), roofline(call.cost, on.scaled(**rates))
    for resource, seconds in slow.by_resource.items():
        if seconds is not None:
            assert fast.by_resource[resource] == pytest.approx(seconds / factor)


def test_formats_change_bytes_and_refuse_nonsense():
    m = model("v3")
    narrow = with_formats(m, {"expert": "mxfp4", "linear": None})
    assert narrow.expert_format == "mxfp4" and narrow.linear_format == m.linear_format
    with pytest.raises(ValueError, match="nearest: mxfp4"):
        with_formats(m, {"expert": "mxfp44"})
    with pytest.raises(ValueError, match="nearest: expert"):
        with_formats(m, {"experts": "mxfp4"})


def test_every_byte_of_memory_has_a_name():
    for phase, more in (("train", dict(pp=2, ranks=16, global_batch=64)), ("decode", {})):
        config = dict(phase=phase, batch=2, seq=1024, context=1024) if phase == "train" else {}
        got = step("v3", **config, **more).memory
        named = sum(got.weights.values()) + got.gradients + got.optimizer + sum(
            got.buffers.values()
        )  # fmt: skip
        assert named == got.total
        assert got.ep_buffer > 0
        if phase == "train":
            assert len(got.activations) > 5


def test_odd_batches_lose_no_sequence_to_the_halves():
    big = dict(phase="prefill", seq=4096, context=4096, ep=32, interleave=2)
    two, three, four = (step("v3", "h800", batch=b, **big).seconds for b in (2, 3, 4))
    assert two < three < four


def test_activations_grow_with_what_is_in_flight():
    from ascendkit.budget.activations import in_flight

    m = model("v3")
    base = dict(phase="train", batch=1, seq=1024, ranks=64, pp=4, ep=16, global_batch=512)
    held = [
        in_flight(plan({**base, "schedule": s, "vp": vp}, m))
        for s, vp in (("1f1b", 1), ("dualpipe", 1), ("interleaved", 2), ("gpipe", 1))
    ]
    assert held == [4, 5, 5.5, 32]


@pytest.mark.parametrize("factor", [0, -1, 1e-9, 1e9])
def test_a_what_if_beyond_reason_is_refused(factor):
    with pytest.raises(ValueError, match=r"what_if\.hbm: got"):
        device("h200").scaled(hbm=factor)
