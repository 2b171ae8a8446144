"""Sizes, cost model, simulation: against published figures, brute force, and each other."""

from __future__ import annotations

import itertools
import math

import pytest

from ep_comm.model.fit import constants
from ep_comm.model.predict import held, predict
from ep_comm.model.published import machines, points
from ep_comm.model.savings import carrier, fp8_saving
from ep_comm.model.skew import skew
from ep_comm.model.volume import volume
from ep_comm.routing import expected_parts
from ep_comm.simulate import simulate
from ep_comm.size import buffer_size, dispatch_record, total
from ep_comm.sms import theoretical_sms

MIB = 1 << 21


@pytest.mark.parametrize(
    ("channels", "topk", "multiple", "units"),
    [(1280, 8, True, 581), (1024, 8, True, 577), (1024, 32, True, 585), (1024, 8, False, 1238),
     (1024, 32, False, 5016)],
)  # fmt: skip
def test_sizes_that_a_public_thread_asked_for(channels, topk, multiple, units):
    size = buffer_size(4096, 7168, topk, scaleout_ranks=2, scaleup_ranks=8, channels=channels,
                       allow_multiple_reduction=multiple)  # fmt: skip
    assert size.num_bytes == units * MIB
    assert size.num_bytes >= max(total(size.dispatch), total(size.combine))
    if (channels, topk) == (1280, 8):
        assert size.num_bytes == 1_218_445_312


def test_sizes_in_direct_mode():
    assert buffer_size(4096, 7168, 8, scaleup_ranks=8).num_bytes / 2**30 == pytest.approx(
        0.44, abs=0.005
    )
    assert buffer_size(16384, 7168, 6, scaleup_ranks=8).num_bytes / 2**30 == pytest.approx(
        1.77, abs=0.005
    )
    assert buffer_size(16384, 7168, 6, scaleup_ranks=128).num_bytes / 2**30 == pytest.approx(
        28.3, abs=0.1
    )
    assert dispatch_record(7168, 8, False) == 14464
    with pytest.raises(ValueError, match="num_topk: got 33, wanted 0 to 32; nearest legal: 32"):
        buffer_size(1, 1, 33)
    with pytest.raises(ValueError, match="hidden: got 0, wanted at least 1"):
        buffer_size(1, 0)


def test_expected_copies_by_brute_force():
    sets = list(itertools.combinations(range(8), 3))
    for parts in (1, 2, 4, 8):
        want = sum(len({e // (8 // parts) for e in s}) for s in sets) / len(sets)
        assert expected_parts(8, 3, parts) == pytest.approx(want)


@pytest.mark.parametrize(("ranks", "copies"), [(8, 4.440), (16, 5.180), (32, 5.601), (64, 5.825)])
def test_copies_of_the_published_shape(ranks, copies):
    v = volume("dispatch", 16384, 7168, 256, 6, ranks, 1024)
    assert v.copies == pytest.approx(copies, abs=5e-4)
    assert v.scaleup == pytest.approx(16384 * v.copies * v.row * (1 - 1 / ranks))


def test_errors_on_published_tables():
    limit = {"ascend_950dt": {"dispatch": 0.01, "combine": 0.03}}
    for p in points():
        if not p.low_latency:
            most = limit.get(p.machine, {}).get(p.part, 0.13)
            assert abs(held(p).error) <= most, (p, held(p).error)


def test_constants_do_not_know_the_points_they_are_asked_to_predict():
    for p in points():
        h = held(p)
        if h.left_out is not None:
            assert constants(p.machine, p.part, p) != constants(p.machine, p.part)
            assert abs(h.left_out) < 0.2
    named = [p for p in points() if p.machine == "ascend_950dt" and p.part == "dispatch"]
    middle = [p for p in named if p.ranks in (16, 32, 64)]
    assert len(middle) == 3
    assert all(constants(p.machine, p.part, p) == constants(p.machine, p.part) for p in middle)


def test_every_machine_has_an_origin_for_its_constants():
    for machine in machines():
        for part in ("dispatch", "combine"):
            c = constants(machine, part)
            assert c.origin and all(c.origin)
            assert min(c.scaleup_gbs, c.scaleout_gbs) < math.inf
            assert c.peer_us >= 0 and c.start_us >= 0 and c.sum_gbs > 0


def test_predictions_scale_as_they_should():
    one = predict("ascend_950dt", "dispatch", 32)
    two = predict("ascend_950dt", "dispatch", 32, num_tokens=32768)
    peers = constants("ascend_950dt", "dispatch").peer_us * 32
    assert two.us - peers == pytest.approx(2 * (one.us - peers))
    assert predict("ascend_950dt", "dispatch", 32, skew=1.5).us > one.us
    wide = predict("ascend_950dt", "dispatch", 32, dtype="bf16")
    assert wide.us > 1.9 * one.us
    hybrid = predict("sm90_cx7", "dispatch", 32)
    assert hybrid.bound == "scaleout" and hybrid.logical_gbs > hybrid.wire_gbs


def test_a_drawn_even_gate_agrees_with_the_formula(seed):
    s = skew("uniform", 64, 4, 8, tokens=4096, draws=4, seed=seed)
    assert s.copies == pytest.approx(expected_parts(64, 4, 8), rel=0.02)
    assert 1 <= s.received < 1.2
    skewed = skew("zipf:1.2", 64, 4, 8, tokens=4096, draws=4, seed=seed)
    assert skewed.received > s.received and skewed.computed > s.computed
    assert skew("zipf:1.2", 64, 4, 8, tokens=4096, draws=4, seed=seed) == skewed
    with pytest.raises(ValueError, match="gate: got 'zipf:x'"):
        skew("zipf:x", 64, 4, 8)


def test_fp8_saves_and_a_cast_costs():
    plain, fused = fp8_saving("ascend_950dt", 32), fp8_saving("ascend_950dt", 32, True)
    assert plain.bf16_us > plain.fp8_us and fused.saved_us - plain.saved_us == pytest.approx(
        plain.cast_us
    )
    assert 0 < plain.saved_us < plain.step_us


def test_the_carrier_changes_where_it_says():
    even = carrier(1, 1).break_even_bytes
    assert carrier(even * 0.99, 1).choice == "ubmem" and carrier(even * 1.01, 1).choice == "urma"
    assert carrier(1 << 30, 64).choice == "ubmem" and carrier(1, 64).break_even_bytes == math.inf
    with pytest.raises(ValueError, match="at least 1"):
        carrier(1, 0)


@pytest.mark.parametrize("gate", ["uniform", "zipf", "one_hot_rank"])
def test_simulation_counts_rows_once(gate):
    direct = simulate(64, "direct", gate=gate, num_tokens=32, sample=32, seed=3)
    hybrid = simulate(64, "hybrid", gate=gate, num_tokens=32, sample=32, seed=3)
    assert direct.copies == hybrid.copies
    sent_or_kept = direct.network_rows + direct.node_rows
    assert sent_or_kept <= direct.copies * 32
    assert hybrid.network_rows <= direct.network_rows
    # Every row that does not stay at the forwarder moves inside the node once.
    assert hybrid.node_rows <= direct.copies * 32
    if gate == "uniform":
        assert direct.copies == pytest.approx(direct.expected, rel=0.05)


def test_simulation_is_what_buffers_do(seed):
    """Rows between ranks, simulated, are the count matrix of a real dispatch."""
    import torch

    from ascendkit.testing import routing, sub_seed
    from ep_comm.buffer import EPBuffer
    from ep_comm.transport import threads

    tokens = 16
    whole = routing("zipf", 8 * tokens, 4, 32, sub_seed(seed, 0), num_ranks=8)

    def work(group):
        b = EPBuffer(group, None, tokens, 64, 4)
        idx = whole[group.rank * tokens : (group.rank + 1) * tokens].clone()
        idx = idx.clone(memory_format=torch.contiguous_format)
        h = b.dispatch(torch.zeros(tokens, 64).bfloat16(), idx, num_experts=32)[3]
        return h.path.hops[0].counts

    counts = threads.run(8, work)[0]
    s = simulate(8, "direct", num_tokens=tokens, num_experts=32, num_topk=4, gate="zipf",
                 sample=tokens, seed=seed)  # fmt: skip
    assert s.copies == pytest.approx(counts.sum() / 8 / tokens)
    assert s.node_rows == pytest.approx((counts.sum() - counts.trace()) / 8)
    assert s.received_skew == pytest.approx(counts.sum(0).max() / counts.sum(0).mean())


@pytest.mark.parametrize("ranks", [64, 2048])
def test_simulation_of_many_ranks(ranks):
    s = simulate(ranks, "hybrid", sample=2)
    assert s.ranks == ranks and s.hops == 2 and s.buffer_bytes > 0


@pytest.mark.parametrize(
    ("nodes", "near", "rate", "bound", "num"),
    [(2, 8, 430, 9.70, 16), (2, 8, 191, 6.47, 12), (4, 8, 430, 4.50, 8), (1, 8, 860, 23.24, 32)],
)
def test_sms_of_known_machines(nodes, near, rate, bound, num):
    got = theoretical_sms(256, 8, nodes, near, rate)
    assert got.bound == pytest.approx(bound, abs=0.006) and got.num_sms == num
    assert got.num_qps == (16 * num + 1 if nodes > 1 else 9)
    most = theoretical_sms(256, 8, nodes, near, rate, prefer_overlap_with_compute=False)
    assert most.num_sms == 64


def test_sms_of_one_rank_and_of_no_link():
    assert theoretical_sms(8, 2, 1, 1, 100.0).num_sms == 4
    with pytest.raises(ValueError, match="positive GB/s"):
        theoretical_sms(8, 2, 1, 8, 0.0)


def test_a_measured_run_is_predicted_from_its_smaller_half():
    from pathlib import Path

    from ep_comm.model.measured import fit, load

    path = Path(__file__).parents[2] / "results" / "ep_comm_multi_h200x2.jsonl"
    found = fit(load(path))
    link = [c for c in found.calls if c.what == "all_to_all" and not c.fitted]
    assert len(link) == 16 and max(abs(c.error) for c in link) < 0.035
    assert {c.shape["tokens"] for c in link} == {8192}
    assert 280 < found.wire_gbs < 300 and found.start_us < 30


def test_a_file_that_is_no_run(tmp_path):
    from ep_comm.model.measured import load

    (tmp_path / "x.jsonl").write_text('{"record": "other"}\n')
    with pytest.raises(ValueError, match="no record ep_comm_multi_time"):
        load(tmp_path / "x.jsonl")
