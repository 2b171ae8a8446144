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
