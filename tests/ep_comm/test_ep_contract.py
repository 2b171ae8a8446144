"""Every backend against the strict-order reference, bit by bit."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ep_comm.contract import Spec, check, matrix

SIZES = (0, 1, 7, 65, 257)


def drawn(rng: random.Random, ranks: int) -> Spec:
    experts = ranks * rng.choice([1, 2, 5, 8])
    return Spec(
        tokens=rng.choice([1, 7, 17, 40]),
        hidden=rng.choice([128, 256, 384, 512]),
        num_topk=rng.randint(1, min(32, experts)),
        num_experts=experts,
        alignment=rng.choice([1, 3, 16, 128]),
        fp8=rng.random() < 0.4,
        num_bias=rng.randint(0, 2),
        asynchronous=rng.random() < 0.3,
        clone=rng.random() < 0.3,
        deferred=rng.random() < 0.3,
        cpu_sync=rng.random() < 0.7,
        deterministic=rng.random() < 0.4,
        multiple=rng.random() < 0.6,
        hybrid=rng.random() < 0.7,
        arrival_seed=rng.choice([None, rng.randint(0, 1 << 20)]),
        routing=rng.choice(["uniform", "zipf", "one_hot_expert", "one_hot_rank", "empty_ranks"]),
        masked=rng.choice([0.0, 0.0, 0.3, 1.0]),
        counts=rng.choice([(), (0,), (0, 1, 7, 40), (5, 0)]),
        seed=rng.randint(0, 1 << 30),
    )


def run(pool, specs, timeout_s=120.0):
    got = pool.run("tests.ep_comm.ranks:checks", [(specs,)] * pool.ranks, timeout_s)
    assert not any(got), next(f for f in got if f)[:3]


@pytest.mark.mpi
@pytest.mark.parametrize("backend", ["threads", "mpi"])
def test_the_144_cases(pool, backend, seed):
    cases = list(matrix(Spec(tokens=9, num_experts=16, seed=seed)))
    assert len(cases) == 144
    # Ranks take turns on two cores: all cases on two of them, a quarter on four processes.
    if backend == "threads":
        run(pool(backend, 2), cases)
    else:
        run(pool(backend, 4), random.Random(seed).sample(cases, 36))


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("backend", "ranks", "near"),
    [("threads", 4, 2), ("threads", 3, 3), ("threads", 1, 1), ("threads", 6, 2),
     ("mpi", 4, 2), ("mpi", 8, 4), ("gloo", 4, None), ("gloo", 4, 2)],
)  # fmt: skip
def test_drawn_cases(pool, backend, ranks, near, seed):
    rng = random.Random(seed)
    count = 12 if backend == "threads" else 4
    run(pool(backend, ranks, near), [drawn(rng, ranks) for _ in range(count)])


@pytest.mark.mpi
@pytest.mark.parametrize(("backend", "ranks"), [("mpi", 4), ("gloo", 4), ("mpi", 8), ("mpi", 16)])
def test_sizes(pool, backend, ranks, seed):
    few = SIZES if backend == "mpi" else (0, 7, 257)
    cases = [
        Spec(tokens=max(t, 1), counts=(t, t, 0, 1) if t < 257 else (t, 1), hidden=h,
             num_experts=64, seed=seed)
        for t in few for h in (256, 512)
    ]  # fmt: skip
    run(pool(backend, ranks), cases)


@pytest.mark.mpi
def test_counts_that_stay_on_the_device(pool, seed):
    """Without CPU sync: padding between sources, in all orders, formats and layouts."""
    base = Spec(tokens=17, num_experts=16, num_topk=5, hidden=128, cpu_sync=False, seed=seed)
    changes = [
        {"masked": 0.4, "fp8": True, "alignment": 16},
        {"counts": (0, 1, 7, 40), "deferred": True, "num_bias": 2},
        {"counts": (0,)},
        {"arrival_seed": 3, "deterministic": True},
        {"arrival_seed": 4, "routing": "zipf"},
        {"routing": "one_hot_rank", "num_topk": 4},
    ]
    run(pool("gloo", 4), [replace(base, **c) for c in changes])


@pytest.mark.mpi
def test_one_row_of_narrow_planes(pool, seed):
    """A single row counts as contiguous whatever its stride."""
    spec = Spec(tokens=1, counts=(1, 0), hidden=128, num_topk=4, num_experts=16, fp8=True,
                deterministic=True, seed=seed)  # fmt: skip
    run(pool("gloo", 4), [spec])


@pytest.mark.mpi
def test_one_case_at_full_width(pool, seed):
    full = Spec(tokens=24, hidden=7168, num_topk=8, num_experts=32, alignment=128, fp8=True,
                seed=seed)  # fmt: skip
    run(pool("mpi", 4), [full])


@pytest.mark.parametrize("near", [None, 2])
def test_fifty_orders_of_arrival(pool, near, seed):
    spec = Spec(tokens=13, num_experts=16, num_topk=5, alignment=4, num_bias=1, seed=seed)
    seeds = [seed + i for i in range(25)]
    got = pool("threads", 4, near).run("tests.ep_comm.ranks:arrivals", [(spec, seeds)] * 4)
    assert not any(got), next(f for f in got if f)[:3]


@pytest.mark.parametrize("routing", ["one_hot_rank", "one_hot_expert", "empty_ranks"])
def test_skew(pool, routing, seed):
    spec = Spec(tokens=64, num_experts=4, num_topk=1, routing=routing, seed=seed)
    more = Spec(tokens=1024, num_experts=16, num_topk=2, hidden=128, routing=routing, seed=seed)
    run(pool("threads", 4), [spec, more])


def test_the_contract_finds_a_wrong_sum(monkeypatch, pool, seed):
    from ep_comm import path

    right = path.reduce
    monkeypatch.setattr(path, "reduce", lambda rows, table, *b: right(rows, table.flip(1), *b))
    spec = Spec(tokens=33, num_topk=8, seed=seed)
    got = pool("threads", 4).run("ep_comm.contract:check", [(spec,)] * 4)
    assert any("combined_x" in fault for faults in got for fault in faults)


def test_the_contract_finds_a_lost_row(monkeypatch, pool, seed):
    from ep_comm.transport.onesided import OneSided

    right = OneSided._write

    def lossy(self, to, at, source, take):
        right(self, to, at, source, take[:-1] if to == 2 and take is not None else take)

    monkeypatch.setattr(OneSided, "_write", lossy)
    got = pool("threads", 4).outcomes("ep_comm.contract:check", [(Spec(seed=seed),)] * 4)
    # What rank 2 makes of the garbage is a refusal or a fault, by what the garbage says.
    assert got[2] != []


def test_contract_alone(seed):
    from ep_comm.transport import threads

    assert threads.run(2, lambda group: check(group, Spec(tokens=5, seed=seed))) == [[], []]
