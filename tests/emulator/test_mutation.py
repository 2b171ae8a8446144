"""A sample of the mutation suite, a schedule that shows a race, and the sync advisor."""

from __future__ import annotations

import pytest
import torch

from ascendkit.emulator import advisor, mutants, records, replay
from ascendkit.emulator.lowered import LoweredKernel
from ascendkit.emulator.mutants import Mutant
from ascendkit.emulator.repeat import Repeated
from tests.emulator import mutation
from tests.emulator.corpus import vector
from tests.emulator.mutation import capacity, data, memory, places

pytestmark = pytest.mark.emu


@pytest.mark.parametrize("name", ["softmax_rows", "gemm_l0", "gemm_relu_scale", "reverse"])
def test_mutants_of_one_kernel_a_family(name):
    (launch,) = mutation.corpus([name], peers=False)
    base = mutation.correct(launch)
    assert not base.findings and not base.conflicts
    found = [mutation.judge(base, m, replays=20) for m in mutants.synchronisation(base.trace)]
    assert sum(o.verdict == mutation.REPORTED for o in found) > len(found) // 3
    assert [o for o in found if o.verdict == mutation.SURVIVED] == []
    assert max(o.seconds for o in found if o.verdict == mutation.REPORTED) < 1.5


@pytest.mark.parametrize("name", ["softmax_rows", "gemm_l0", "histogram"])
def test_mutants_of_data_of_one_kernel_a_family(name):
    (launch,) = mutation.corpus([name], peers=False)
    base = data.prepare(launch, mutation.correct(launch).trace)
    assert not base.findings and base.outputs == launch.run()
    found = [data.judge(base, m) for m in base.mutants]
    kinds = {"count", "bytes", "drop"} if name == "gemm_l0" else {"count", "drop", "shift"}
    assert kinds <= {o.mutant.kind for o in found}
    assert sum(o.verdict == mutation.REPORTED for o in found) > len(found) // 3
    assert [o.row() for o in found if o.verdict == mutation.SURVIVED] == []


def test_mutants_of_capacity_are_told_without_a_run():
    launches = mutation.corpus(["accumulate", "bias_relu"], peers=False)
    for launch in launches:
        assert capacity.fits_as_it_is(launch)
        grown = capacity.mutants(launch)
        assert {g.rows > 0 for g in grown if not g.versions} == {True}
        found = [capacity.judge(launch, g) for g in grown]
        assert [o.row() for o in found if o.verdict == mutation.SURVIVED] == []
        assert all(o.verdict == mutation.REPORTED for o in found if o.mutant.rows)


def test_the_oracle_of_memory_sees_a_load_and_a_store_that_are_not_there():
    """The judges take no part in it."""
    (launch,) = mutation.corpus(["softmax_rows"], peers=False)
    right = data.prepare(launch, mutation.correct(launch).trace)
    for name, kind, rule in (
        ("asc_copy_gm2ub_align", "drop", "that nobody wrote"),
        ("asc_copy_ub2gm_align", "drop", "are not written"),
        ("asc_copy_ub2gm_align", "bytes", "12 bytes of output 1 are not written"),
    ):
        line = next(r.line for r in mutation.correct(launch).trace if r.name == name)
        _, trace = data._traced(launch, [Mutant(line, name, kind, amount=-4)])
        facts = memory.facts(trace, launch.spans())
        said = [*memory.broken(right.facts, facts), memory.undefined(right.facts, facts)]
        assert any(rule in text for text in said), (name, kind, said)


def test_a_lane_that_shows_under_one_sign_alone_is_found_in_a_replay():
    """A top-k picks an undefined score if it is large; the next odd seed tries the other sign."""
    (launch,) = mutation.corpus(["topk_gate"], peers=False)
    copy = next(r.line for r in mutation.correct(launch).trace if r.name == "asc_copy_gm2ub_align")
    short = Mutant(copy, "asc_copy_gm2ub_align", "bytes", amount=-4)
    said = []
    for seed in (0, 1):
        launch.run(check=True, mutate=[short], replay=seed)
        said.append({f.code for f in launch.kernel.findings})
    assert said.count({"AK-UNINIT-003"}) == 1 and said.count(set()) == 1


def test_places_are_counted_once_and_change_no_line():
    text = LoweredKernel(vector.softmax_rows(3)).kernel_source
    prepared, found = places.prepared(text)
    assert len(prepared.splitlines()) == len(text.splitlines())
    assert [p.number for p in found] == list(range(len(found)))
    assert all(f"ak_shift({p.number})" in prepared.splitlines()[p.line - 1] for p in found)
    assert {p.what for p in found} == {"simd index", "simd loop", "simd store", "scalar call"}


@pytest.fixture
def racing(seed):
    """A kernel in one buffer, and the mutant without its wait for the copy in."""
    torch.manual_seed(seed)
    launch = Repeated(vector.single_buffer(3), [torch.randn(3, 128), torch.zeros(3, 128)])
    records.read()
    launch.launch(trace=2)
    drops = mutants.synchronisation(records.read())
    wait = next(m for m in drops if m.op == "asc_sync_wait" and m.other == "V" and m.kind == "drop")
    launch.restore()
    return launch, wait


def test_a_schedule_shows_the_race_again(racing, tmp_path):
    launch, wait = racing
    assert replay.search(launch, seeds=20) is None
    found = replay.search(launch, mutate=[wait])
    assert found is not None and "bytes differ" in found.effect
    path = tmp_path / "schedule.json"
    found.save(path)
    x, y = launch.args
    kernel = LoweredKernel(vector.single_buffer(3))
    kernel(x, y, mutate=[wait], schedule=path)
    assert not torch.equal(y, -x)
    launch.restore()
    kernel(x, y, schedule=path)
    assert torch.equal(y, -x)
    launch.restore()
    with pytest.raises(ValueError, match="schedule: got arguments"):
        kernel(x + 1, y, schedule=path)


def test_the_advisor_names_what_nothing_needs():
    kernel = LoweredKernel(vector.single_buffer(3))
    x, y = torch.randn(3, 128), torch.zeros(3, 128)
    assert advisor.advise(kernel, x, y) == []
    lines = kernel.kernel_source.splitlines()
    at = next(i for i, line in enumerate(lines) if "simd_vf_0(buf)" in line and "asc" not in line)
    lines.insert(at, "    asc_sync();")
    text = "\n".join(lines)
    found = advisor.advise(text, *_in_order(kernel, x, y), grid=1)
    assert [(p.op, p.site) for a in found for p in a.group.parts if p.op == "asc_sync"] == [
        ("asc_sync", at + 1)
    ]
    raw = found[0].finding()
    assert raw.code == "AK-ADVICE-001" and "executed 3 times" in str([a.finding() for a in found])


def _in_order(kernel, x, y):
    names = [p.name for p in next(iter(_kernels(kernel))).parameters]
    return [{"x": x, "y": y}[n] for n in names]


def _kernels(kernel):
    from ascendkit.emulator import source

    return source.kernels(kernel.kernel_source).values()


def test_a_mutant_says_what_it_is():
    assert str(Mutant(7, "asc_sync_wait", "drop", "MTE2", "V", 1)) == (
        "line 7: asc_sync_wait(MTE2, V id 1): drop"
    )
