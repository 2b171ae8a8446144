"""The device-side ops: the registry loop, and programs that compile without a device."""

from __future__ import annotations

import pytest
import torch

from ascendkit import platform as platforms
from ascendkit.check.correctness import check_case
from ascendkit.registry import op
from ep_comm.expand import expand
from ep_comm.layout import layout, unpack
from ep_comm.reduce import reduce

OPS = ("layout", "expand", "reduce")


def failures(name: str, platform: str, level: str, seed: int) -> list[str]:
    state = platforms.available(platform)
    if not state:
        pytest.skip(f"{platform}: {state.reason}")
    one = op(f"ep_comm.{name}")
    outcomes = [check_case(one, platform, c, seed) for c in one.cases(level) if not c.bench]
    assert any(o.status == "pass" for o in outcomes)
    return [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


@pytest.mark.parametrize("name", OPS)
def test_reference(name, seed):
    assert not failures(name, "reference", "core", seed)


@pytest.mark.emu
@pytest.mark.parametrize("name", OPS)
def test_emulator(name, seed):
    assert not failures(name, "emulator", "smoke", seed)


@pytest.mark.cuda
@pytest.mark.parametrize("name", OPS)
def test_cuda(name, seed):
    assert not failures(name, "cuda", "core", seed)


@pytest.mark.parametrize("name", ["dispatch", "combine"])
def test_collectives_on_every_backend(name, seed):
    assert not failures(name, "reference", "smoke", seed)


def test_a_backend_that_is_wrong_is_found(monkeypatch, seed):
    from ep_comm.dispatch import launch

    def wrong(one, per_rank):
        got = one.load("reference").reference(list(per_rank))
        got[1][0][0, 0] += 1
        return got

    monkeypatch.setattr(launch, "launchers", lambda: {"bent": wrong})
    one = op("ep_comm.dispatch")
    case = next(c for c in one.cases("core") if c.name.startswith("33-"))
    found = check_case(one, "reference", case, seed)
    assert found.status == "fail" and "backend bent against the reference" in found.message


def compiles(kernel) -> bool:
    """Whether a kernel of sm_90a comes out; skips without the compiler."""
    pytest.importorskip("tilelang", reason="pip install -e '.[cuda]'")
    import shutil

    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not on PATH")
    return "__global__" in kernel().get_kernel_source()


@pytest.mark.parametrize("words", [4, 1792])
def test_expand_compiles_for_sm_90(words):
    from ep_comm.expand import cuda

    assert compiles(lambda: cuda.kernel(words, "sm_90a"))


def test_reduce_compiles_for_sm_90():
    from ep_comm.reduce import cuda

    assert compiles(lambda: cuda.kernel(7168, 6, 2, "sm_90a"))


def test_layout_compiles_for_sm_90():
    from ep_comm.layout import cuda

    assert compiles(lambda: cuda.kernel(8, 256, 64, "sm_90a"))


def test_layout_by_hand():
    idx = torch.tensor([[0, 3, 1], [2, -1, 3], [-1, -1, -1]])
    got = unpack(layout(idx, 4, 2), idx, 4, 2)
    assert got.num_tokens_per_rank.tolist() == [1, 2]
    assert got.num_tokens_per_expert.tolist() == [1, 1, 1, 2]
    assert got.slot.tolist() == [[-1, 0, 0], [-1, -1, 1], [-1, -1, -1]]


def test_reduce_starts_at_plus_zero_and_rounds_once():
    rows = torch.tensor([[-0.0] * 8, [1.0] * 8, [2.0**-9] * 8]).bfloat16()
    table = torch.tensor([[0, -1, -1], [1, 2, 2]], dtype=torch.int32)
    got = reduce(rows, table)
    assert not torch.signbit(got[0]).any()
    # 1 + 2**-9 + 2**-9 is 1 + 2**-8: half way between two bf16 values, to even is 1.
    assert got[1].tolist() == [1.0] * 8
    assert reduce(rows, table[1:, [1, 2, 0]]).tolist() == [[1.0] * 8]


def test_reduce_takes_the_second_bias_alone():
    rows, table = torch.ones(1, 8).bfloat16(), torch.full((2, 1), -1, dtype=torch.int32)
    b = torch.full((2, 8), 3.0).bfloat16()
    assert torch.equal(reduce(rows, table, None, b), b)


def test_expand_into_out_and_without_rows():
    rows = torch.arange(16.0).view(2, 8).bfloat16()
    out = torch.full((3, 8), -1.0).bfloat16()
    assert expand(rows, torch.tensor([1, -1, 0], dtype=torch.int32), out=out) is out
    assert out.tolist() == [rows[1].tolist(), [0.0] * 8, rows[0].tolist()]
    with pytest.raises(ValueError, match="expand out"):
        expand(rows, torch.tensor([0], dtype=torch.int32), out=out)
    none = expand(rows[:0], torch.tensor([-1], dtype=torch.int32))
    assert none.tolist() == [[0.0] * 8]


@pytest.mark.emu
def test_a_whole_call_with_emulated_epilogues(monkeypatch, seed):
    state = platforms.available("emulator")
    if not state:
        pytest.skip(f"emulator: {state.reason}")
    from ep_comm.contract import Spec, check
    from ep_comm.transport import threads

    monkeypatch.setenv("ASCENDKIT_PLATFORM", "emulator")
    spec = Spec(tokens=9, hidden=128, num_topk=4, num_experts=8, alignment=4, num_bias=1, seed=seed)
    assert threads.run(1, lambda group: check(group, spec)) == [[]]
