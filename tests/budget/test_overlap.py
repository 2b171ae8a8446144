"""List scheduling against sums and maxima, pipelines against closed forms."""

from __future__ import annotations

import random

import pytest

from ascendkit.budget.overlap.fluid import Task, run
from ascendkit.budget.overlap.orders import SCHEDULES, order
from ascendkit.budget.overlap.pipeline import Stage, counts, simulate


def test_independent_resources_run_beside_each_other():
    assert run([Task("a", 3, {"x": 1}), Task("b", 2, {"y": 1})]) == pytest.approx(3)


def test_one_resource_serves_in_order():
    tasks = [Task("a", 3, {"x": 1}), Task("b", 2, {"x": 1})]
    assert run(tasks) == pytest.approx(5)
    assert (tasks[0].start, tasks[0].end, tasks[1].end) == pytest.approx((0, 3, 5))


def test_shares_fill_a_resource():
    # Both want 60 %: the first runs at full speed, the second on what is left.
    tasks = [Task("a", 3, {"x": 0.6}), Task("b", 3, {"x": 0.6})]
    assert run(tasks) == pytest.approx(3 + (3 - 3 * 0.4 / 0.6))


def test_a_chain_waits():
    assert run([Task("a", 1, {}), Task("b", 1, {}, [0]), Task("c", 1, {}, [1])]) == pytest.approx(3)


def test_a_transfer_beside_compute_is_slower():
    compute, move = Task("a", 2, {"x": 1}), Task("b", 2, {"l": 1}, kept=0.5, transfer=True)
    assert run([compute, move]) == pytest.approx(3)


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="wait for each other"):
        run([Task("a", 1, {}, [1]), Task("b", 1, {}, [0])])


def test_any_schedule_lies_between_longest_path_and_sum(seed):
    rng = random.Random(seed)
    for _ in range(50):
        n = rng.randint(1, 12)
        tasks = [
            Task(str(i), rng.uniform(0.1, 2), {rng.choice("xyz"): rng.uniform(0.1, 1)},
                 [j for j in range(i) if rng.random() < 0.3]) for i in range(n)
        ]  # fmt: skip
        end = run(tasks)
        longest: list[float] = []
        for t in tasks:
            longest.append(t.seconds + max((longest[j] for j in t.after), default=0))
        assert max(longest) - 1e-9 <= end <= sum(t.seconds for t in tasks) + 1e-9
        for t in tasks:
            assert t.end - t.start >= t.seconds - 1e-9
            assert all(tasks[j].end <= t.start + 1e-9 for j in t.after)


def test_dualpipe_has_the_published_number_of_paired_slots():
    for rank in range(16):
        h = min(rank, 15 - rank)
        got = counts("dualpipe", rank, 16, 120)
        assert got["FB"] == (103 if h == 7 else 97 + h)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("pp", "micro", "vp"), [(2, 8, 1), (4, 16, 2), (8, 32, 1)])
def test_every_micro_batch_passes_every_chunk_once(schedule, pp, micro, vp):
    if schedule != "interleaved":
        vp = 1
    for rank in range(pp):
        seen = [w for slot in order(schedule, rank, pp, micro, vp) for w in slot]
        chunks = {c for c in range(pp * vp) if c % pp == rank}
        if schedule == "dualpipe":
            chunks = {rank, pp - 1 - rank}
        per = micro * vp
        forward = [w for w in seen if w.kind == "F"]
        back = [w for w in seen if w.kind in "BI"]
        assert len(forward) == len(set(forward)) == len(back) == len(set(back)) == per
        assert sorted(w for w in seen if w.kind == "W") == sorted(
            w._replace(kind="W") for w in seen if w.kind == "I"
        )
        assert {w.chunk for w in forward} <= chunks


def test_1f1b_meets_its_closed_form(seed):
    rng = random.Random(seed)
    pp, micro, f, b = 4, 16, rng.uniform(0.5, 1), rng.uniform(1, 2)
    got = simulate("1f1b", [Stage(f, b, 0, f + b)] * pp, pp, micro)
    assert got.seconds == pytest.approx((micro + pp - 1) * (f + b))
    assert got.bubble == pytest.approx((pp - 1) * (f + b))


def test_interleaving_divides_the_bubble():
    pp, micro, vp = 4, 32, 4
    one = simulate("1f1b", [Stage(1, 2, 0, 3)] * pp, pp, micro)
    many = simulate("interleaved", [Stage(0.25, 0.5, 0, 0.75)] * pp * vp, pp, micro, vp)
    assert many.bubble == pytest.approx(one.bubble / vp)


def test_dualpipe_beats_1f1b_where_pairs_overlap():
    stages = [Stage(1, 2, 0.7, 2.5)] * 8
    assert simulate("dualpipe", stages, 8, 40).seconds < simulate("1f1b", stages, 8, 40).seconds


def test_the_slowest_stage_decides():
    even = [Stage(1, 2, 0, 3)] * 4
    slow = [*even[:3], Stage(1.5, 3, 0, 4.5)]
    assert simulate("1f1b", slow, 4, 64).seconds > 64 * 4.5
    assert simulate("1f1b", even, 4, 64).seconds < simulate("1f1b", slow, 4, 64).seconds


@pytest.mark.parametrize(
    ("schedule", "pp", "micro", "vp"),
    [
        ("dualpipe", 3, 12, 1),
        ("dualpipe", 4, 7, 1),
        ("dualpipe", 8, 8, 1),
        ("interleaved", 4, 6, 2),
    ],
)
def test_a_schedule_that_cannot_run_says_so(schedule, pp, micro, vp):
    with pytest.raises(ValueError, match=r"(micro-batches|pp): got"):
        order(schedule, 0, pp, micro, vp)
