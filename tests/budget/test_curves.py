"""Kernel rows and what is fitted to them: sources, monotonicity, transfer, marks."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from runpy import run_path

import pytest

from ascendkit.budget.call import Call
from ascendkit.budget.curves.curve import Curve, Sample
from ascendkit.budget.curves.facts import contention, donors, files, floor, known
from ascendkit.budget.curves.lookup import Stack, fitted, timing
from ascendkit.budget.curves.rows import rows
from ascendkit.budget.curves.tiles import padding
from ascendkit.budget.curves.work import SPLIT, ideal, key_of, whole
from ascendkit.data import configs, table
from ascendkit.hardware import device, devices

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("key", known())
def test_every_row_has_a_device_a_source_and_a_time(key):
    assert key in devices()
    for file in files(key):
        assert set(file) <= {
            "schema", "donors", "sources", "floors", "floor_us", "floor_source", "series", "rows",
            "contention", "calibration", "collective_kept", "instead",
        }  # fmt: skip
        for source in file.get("sources", {}).values():
            assert set(source) == {"ref", "kind"} and all(source.values())
        for s in file.get("series", ()):
            assert s["source"] in file["sources"], s["id"]
            assert all(len(v) == len(s["us"]) for v in s["at"].values()), s["id"]
    found = rows(key)
    ids = [r.id for r in found if "[" in r.id]
    assert len(ids) == len(set(ids))
    for row in found:
        assert row.seconds > 0 and row.source and row.mark in "MP", row.id
        assert all(max(ideal(c, device(key))) >= 0 for c in row.calls), row.id


def test_every_file_is_a_device():
    names = {p.name.split(".")[0] for p in (configs() / "data" / "kernels").iterdir()}
    assert names <= set(devices())
    for key in names:
        assert set(donors(key)) <= set(devices()) - {key}


def curve(rng, n=12):
    """Rows of a kernel with 10 us latency, 60 % of the matrix and 80 % of the memory rate."""
    samples = []
    for i in range(n):
        w = (10 ** rng.uniform(-6, -2), 10 ** rng.uniform(-6, -2))
        t = (1e-5 + math.hypot(w[0] / 0.6, w[1] / 0.8)) * math.exp(rng.gauss(0, 0.02))
        samples.append(Sample(w, t, f"row{i}"))
    return Curve(samples)


def test_a_fit_finds_what_made_the_rows(seed):
    got = curve(random.Random(seed), 40)
    assert got.spread < 0.1
    assert got.utilisation(0) == pytest.approx(0.6, rel=0.15)
    assert got.utilisation(1) == pytest.approx(0.8, rel=0.15)
    assert got.latency == pytest.approx(1e-5, rel=0.4)


def test_more_work_never_takes_less_time(seed):
    rng = random.Random(seed)
    got = curve(rng)
    for _ in range(200):
        w = [10 ** rng.uniform(-7, -1) for _ in range(2)]
        more = [v * rng.uniform(1, 3) for v in w]
        assert got.seconds(more) >= got.seconds(w) > 0


@pytest.mark.parametrize(("share", "latency"), [(0.9, 0.0), (0.05, 1e-5)])
def test_one_row_is_met(share, latency):
    work, seconds = 1e-5 * share, 1e-5
    got = Curve([Sample((work, 0.0), seconds, "only")])
    assert got.seconds((work, 0.0)) == pytest.approx(seconds, rel=1e-4)
    assert got.latency == pytest.approx(latency, rel=0.2, abs=1e-9)
    assert got.spread == 0.25


def test_what_lasts_is_not_latency():
    got = Curve([Sample((0.04, 0.0), 0.1, "long")])
    assert got.seconds((0.4, 0.0)) == pytest.approx(1.0, rel=1e-4)


GEMM = dict(m=256, n=7168, k=2048, a="fp8_1x128", b="fp8_128x128")


def test_marks_tell_how_far_the_row_is():
    call = Call("", "gemm_mad.gemm", GEMM)
    assert timing(call, device("h200"), Stack("decode")).mark == "P"
    assert timing(call, device("h20"), Stack("decode")).mark == "T"
    swiglu = Call("", "tilekernels.swiglu", dict(num_tokens=1024, hidden=2048, out="fp8_1x128"))
    assert timing(swiglu, device("h200"), Stack("decode")).mark == "M"
    bare = timing(call, device("ascend_960"), Stack("decode"))
    assert (bare.mark, bare.rows) == ("A", ())


def test_rows_left_out_are_not_used():
    call = Call("", "gemm_mad.gemm", GEMM)
    on = device("h200")
    whole = fitted(call, on, Stack("decode"))
    less = fitted(call, on, Stack("decode", without=("aic_gemm",)))
    assert less.rows < whole.rows
    assert not any(
        r.startswith("h200_gemm") for r in timing(
            call, on, Stack("decode", without=("aic_gemm",))).rows
    )  # fmt: skip


def test_a_phase_has_its_own_kernels():
    call = Call("", "ep_comm.dispatch", dict(num_tokens=128, hidden=7168, num_experts=256,
                                             num_topk=8, ep=8, scaleup_ranks=8))  # fmt: skip
    low, normal = (timing(call, device("h200"), Stack(p)) for p in ("decode", "prefill"))
    assert "ll" in low.rows[0] and "normal" in normal.rows[0]
    assert low.seconds < normal.seconds


def test_launch_modes_are_ordered():
    for key in ("h200", "ascend_950pr", "h20", "ascend_910b"):
        times = [floor(key, mode)[0] for mode in ("graph", "queued", "eager")]
        assert 0 < times[0] < times[1] < times[2], key
    assert floor("h200", "graph")[1] == "M"
    assert floor("h20", "graph")[1] == "T"


def test_contention_is_a_ratio_of_two_rows():
    stock = {r["id"]: r["value"] for r in table("hardware")["kernels"]}
    alone = stock["h800_deepep_normal_ep64"]
    want = (stock["h800_train_dispatch"] / alone[0] + stock["h800_train_combine"] / alone[1]) / 2
    assert contention("h800") == (pytest.approx(want), "h800: h800_train_dispatch")
    kept, source = contention("h800", collective=True)
    assert 0.3 < kept < 0.6 and source == "h200: own_contention"


def test_padding_counts_tiles_and_waves(seed):
    rng = random.Random(seed)
    on = device("ascend_950dt")
    for _ in range(50):
        m, n = rng.randint(1, 5000), rng.randint(1, 20000)
        assert padding(on, m, n) >= 1
    # 33 tiles on 32 cores take two waves of them.
    assert padding(on, 256 * 33, 256) > 1.2
    assert padding(on, 256 * 32, 256) == pytest.approx(1)
    assert padding(device("ascend_960"), 1, 1) == 1


def test_a_row_faster_than_the_peak_is_not_a_time():
    from ascendkit.budget.curves.lookup import _samples

    kept = {s.id for _, _, s in _samples("ascend_950pr", ())}
    # Copies that fit L2 run above the rate of the memory.
    assert "dma-027" not in kept and "dma-030" in kept


def topk_call(rows, row_len, k=1024):
    return Call("", "topk.radix_select", dict(rows=rows, row_len=row_len, num_topk=k))


def test_top_k_follows_its_own_measured_curve():
    """The rows come from the JSONL of measurements alone, and longer rows take longer."""
    from ascendkit.budget.curves.lookup import _samples

    own = [r for k, r, _ in _samples("h200", ()) if k.op == "topk.radix_select"]
    assert own and all(r.mark == "M" and r.source.startswith("own_topk") for r in own)
    for batch in (1, 6, 256, 4096):
        times = [
            timing(topk_call(batch, 1 << n), device("h200"), Stack("decode")) for n in range(12, 21)
        ]
        assert {t.mark for t in times} == {"M"}
        seconds = [t.seconds for t in times]
        assert seconds == sorted(seconds) and seconds[-1] > seconds[0]
        assert batch < 256 or seconds[-1] > 5 * seconds[0]
    for row in own:
        (call,) = row.calls
        got = timing(call, device("h200"), Stack("decode"))
        # Four standard errors of the fit: there are some eighty rows.
        assert abs(math.log(got.seconds / row.seconds)) < 4 * got.sigma, row.id


def test_few_rows_have_another_kernel():
    few, many = (fitted(topk_call(r, 1 << 18), device("h200"), Stack("decode")) for r in (6, 256))
    assert few != many
    assert key_of(topk_call(131, 9), device("h200")) != key_of(topk_call(132, 9), device("h200"))


def test_the_rows_of_top_k_are_those_of_its_records():
    """After new lines in the JSONL: python results/budget_curves/extract_topk.py."""
    found = run_path(str(ROOT / "results" / "budget_curves" / "extract_topk.py"))
    records = [json.loads(line) for line in found["RECORDS"].read_text().splitlines()]
    assert found["TARGET"].read_text() == found["text"](records)
    slower = {**records[-1], "ours_us": {"other": 1e9}}
    assert found["text"]([*records, slower]) == found["text"](records), "the fastest layout"
    assert found["text"]([r for r in records if "command" not in r]) == found["HEADER"]


@pytest.fixture
def records(tmp_path):
    """A file of records, and the rows it gave forgotten afterwards."""
    from ascendkit.budget.curves.records import adopt

    yield tmp_path / "own.jsonl"
    adopt([])


def record(**change):
    from ascendkit.bench.record import Record

    got = dict(
        op="tilekernels.embedding", case="c", platform="cuda", device="NVIDIA H200",
        params=dict(num_tokens=4096, hidden=7168, seed=1), time_us=dict(p20=29, p50=30.99, p80=31),
        flops=(), bytes=dict(minimum=1, hbm=1, l2=1, onchip=1, link=0),
        achieved=dict(gbs=1, tflops=0), ceiling=None, bound=None, commit="abc",
        environment={}, method="graph", l2_state="cold",
    )  # fmt: skip
    return Record(**{**got, **change}).to_json() + "\n"


def test_our_own_records_become_rows(records):
    from ascendkit.budget.curves.records import adopt

    call = Call("", "tilekernels.embedding", dict(num_tokens=4096, hidden=7168))
    before = timing(call, device("h200"), Stack("decode"))
    records.write_text(record() + record(platform="reference") + record(params={}))
    assert adopt([str(records)]) == 1
    after = timing(call, device("h200"), Stack("decode"))
    assert (before.mark, after.mark) == ("T", "M")
    assert after.seconds == pytest.approx(30.99e-6, rel=1e-3)
    assert after.rows == ("own.jsonl:1",) and "commit abc" in after.source


@pytest.mark.parametrize(
    ("name", "key"),
    [("NVIDIA H200", "h200"), ("Ascend950DT_9582", "ascend_950dt"), ("NVIDIA GB300", "gb300"),
     ("NVIDIA H100 80GB HBM3", "h100"), ("Ascend910B2", "ascend_910b")],
)  # fmt: skip
def test_runtime_names_of_devices(name, key):
    from ascendkit.budget.curves.records import device_of

    assert device_of(name) == key


def test_a_device_nobody_knows_is_refused():
    from ascendkit.budget.curves.records import device_of

    with pytest.raises(ValueError, match="wanted one of"):
        device_of("TPU v9")


@pytest.mark.parametrize("on", sorted(devices()))
def test_more_rows_never_take_less_where_another_kernel_takes_over(on, seed):
    """The 950DT once timed 30 rows by a 950PR's kernel of split rows, and 45 by a GPU's."""
    rng = random.Random(seed)
    stack = Stack(rng.choice(["decode", "prefill"]))
    for op, name in SPLIT.items():
        few = whole(device(on))
        counts = [1, 4, few // 2, few - 1, few, few + 1, 2 * few, 2000]
        length = rng.randint(512, 131072)
        calls = [
            Call("", op, {name: n, "row_len": length, "num_topk": min(512, length)}) for n in counts
        ]
        times = [timing(c, device(on), stack).seconds for c in calls]
        assert times == pytest.approx(sorted(times), rel=1e-9), (op, length)


def test_split_and_whole_rows_come_from_one_device():
    on, stack = device("ascend_950dt"), Stack("decode")
    few = whole(on)
    calls = [
        Call("", "topk.radix_select", {"rows": n, "row_len": 8192, "num_topk": 512})
        for n in (few - 1, few)
    ]
    hows = {timing(c, on, stack).how.split(",")[0] for c in calls}
    assert len(hows) == 1, hows
