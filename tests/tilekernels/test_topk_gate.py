"""topk_gate: the registry loop, non-finite scores on every platform, tracing, both programs."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
import torch

from ascendkit import platform as platforms
from ascendkit.check.correctness import check_case
from ascendkit.op import Case
from ascendkit.registry import op
from ascendkit.testing import SCORES, scores
from tests.tilekernels.cuda_model import Model, lower
from tilekernels.topk_gate import ascend, cuda, topk_gate
from tilekernels.topk_gate.oracle import oracle

GATE = op("tilekernels.topk_gate")
PASSES = cuda.PASSES


def on(platform: str) -> str:
    """The platform's device; skips where the platform cannot run."""
    state = platforms.available(platform)
    if not state:
        pytest.skip(f"{platform}: {state.reason}")
    return {"cuda": "cuda", "ascend": "npu"}.get(platform, "cpu")


def failures(platform: str, level: str, seed: int) -> list[str]:
    """What the check loop finds; empty when every case passes."""
    on(platform)
    outcomes = [check_case(GATE, platform, c, seed) for c in GATE.cases(level)]
    assert any(o.status == "pass" for o in outcomes)
    return [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


def test_reference_passes_every_case(seed: int) -> None:
    assert not failures("reference", "core", seed)


@pytest.mark.emu
@pytest.mark.parametrize(("experts", "topk"), [(256, 8), (72, 6), (600, 3)])
def test_emulator_agrees_on_every_kind_of_scores(experts: int, topk: int, seed: int) -> None:
    on("emulator")
    # Rows go in pairs: 67 leave a last one alone.
    for kind in SCORES:
        x = scores(kind, (67, experts), seed)
        got = topk_gate(x, topk, platform="emulator", check_values=False)
        assert got.tolist() == oracle(x.numpy(), topk).tolist(), kind


@pytest.mark.emu
def test_emulated_result_is_the_same_in_every_order_of_pipes(seed: int) -> None:
    on("emulator")
    from ascendkit import use

    # On two cores each walks over five tiles, two in flight.
    x = scores("ties", (150, 256), seed)
    want = topk_gate(x, 8)
    with use("emulator"):
        kernel = ascend.kernel(256, 8, 2, True)
        for replay in range(1, 4):
            out = torch.full((150, 8), -1)
            kernel(x, out, replay=seed % 1000 + replay)
            assert torch.equal(out, want)


@pytest.mark.cuda
def test_cuda_passes_every_case(seed: int) -> None:
    assert not failures("cuda", "core", seed)


@pytest.mark.parametrize("platform", ["reference", "cuda", "ascend"])
@pytest.mark.parametrize("kind", [k for k in SCORES if "nan" in k or "inf" in k])
def test_non_finite_scores_mean_the_same_everywhere(platform: str, kind: str, seed: int) -> None:
    device = on(platform)
    x = scores(kind, (19, 256), seed)
    got = topk_gate(x.to(device), 8, platform=platform, check_values=False)
    assert got.cpu().tolist() == oracle(x.numpy(), 8).tolist()


@pytest.mark.parametrize("platform", ["reference", "cuda", "ascend"])
def test_nan_is_refused_where_values_are_checked(platform: str) -> None:
    x = torch.zeros(3, 16, device=on(platform))
    x[1, 5] = torch.nan
    with pytest.raises(ValueError, match="got 1 NaN, the first at token 1, expert 5"):
        topk_gate(x, 2, check_values=True)
    if platform == "reference":
        with pytest.raises(ValueError, match="check_values=False"):
            topk_gate(x, 2)


@pytest.mark.parametrize("kind", ["all_nan", "all_minus_inf", "minus_inf_end", "signed_zeros"])
def test_no_index_occurs_twice(kind: str, seed: int) -> None:
    got = topk_gate(scores(kind, (5, 40), seed), 32, check_values=False)
    assert all(len(set(row)) == 32 for row in got.tolist())


def test_out_is_written_and_returned(seed: int) -> None:
    x = scores("ties", (6, 64), seed)
    out = torch.full((6, 8), -1)
    assert topk_gate(x, 8, out=out) is out
    assert torch.equal(out, topk_gate(x, 8))


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (torch.empty(4, 8, dtype=torch.int32), TypeError),
        (torch.empty(4, 7, dtype=torch.int64), ValueError),
        (torch.empty(8, 4, dtype=torch.int64).T, ValueError),
        (torch.empty(4, 8, dtype=torch.int64, device="meta"), ValueError),
        ([0] * 32, TypeError),
    ],
)
def test_a_wrong_out_is_refused(out: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="topk_gate out"):
        topk_gate(torch.zeros(4, 64), 8, out=out)  # type: ignore[arg-type]


def test_no_tokens_return_at_once() -> None:
    assert topk_gate(torch.empty(0, 64), 8).shape == (0, 8)


def test_opcheck(seed: int) -> None:
    from ascendkit import library

    x = scores("random", (5, 64), seed)
    topk_gate(x, 8)
    functional, mutating = library.functional(GATE.name), library.mutating(GATE.name)
    torch.library.opcheck(functional, (x, 8, "reference"))
    torch.library.opcheck(mutating, (x, 8, torch.empty(5, 8, dtype=torch.int64), "reference"))


def test_compiles_without_a_graph_break(seed: int) -> None:
    @torch.compile(backend="aot_eager", fullgraph=True)
    def gate(x: torch.Tensor) -> torch.Tensor:
        return topk_gate(x * 2, 8) + 1

    for tokens in (5, 9):
        x = scores("random", (tokens, 64), seed)
        assert torch.equal(gate(x), topk_gate(x * 2, 8) + 1)


def test_cost_counts_every_byte_once() -> None:
    x = torch.empty(7, 72)
    moved = x.nbytes + GATE.load().allocate(x, 6).nbytes
    cost = GATE.cost(num_tokens=7, num_experts=72, num_topk=6)
    assert cost.minimum_bytes() == moved
    assert cost.planned_bytes()["hbm"] == moved


def shapes(level: str) -> list[tuple[int, int, int]]:
    """(num_tokens, num_experts, num_topk) of every legal case with work to do."""
    names = ("num_tokens", "num_experts", "num_topk")
    legal = [c.params for c in GATE.cases(level) if not c.error or "scores" in c.params]
    found = (tuple(p[n] for n in names) for p in legal)
    return sorted({s for s in found if s[0]})


def test_cuda_plans_hold_every_score() -> None:
    every = range(1, cuda.MAX_EXPERTS + 1)
    for tokens, experts, topk in itertools.product((1, 10**6), every, (1, 8, 9, 16, 17, 32)):
        if topk <= experts:
            p = cuda.plan(tokens, experts, topk)
            assert topk <= p.lanes <= cuda.WARP and experts % p.width == 0
            chunks = -(-experts // (p.lanes * p.width))
            assert 1 <= chunks * p.width <= cuda.MAX_SCORES
    wide = {"num_tokens": 1, "num_experts": cuda.MAX_EXPERTS + 1, "num_topk": 1}
    assert not cuda.supports(Case("wide", wide))


@pytest.mark.parametrize(("tokens", "experts", "topk"), [(4096, 256, 8), (5, 256, 8), (5, 30, 7)])
def test_cuda_program_on_this_cpu(
    tokens: int, experts: int, topk: int, seed: int, tmp_path: Path
) -> None:
    model = modelled(experts, topk, tokens, tmp_path)
    for kind in SCORES:
        x = scores(kind, (19, experts), seed)
        out = torch.full((19, topk), -7)
        model(5, seed, scores=x, topk_idx=out, num_tokens=19)
        assert out.tolist() == oracle(x.numpy(), topk).tolist(), kind


def test_cuda_programs_lower_without_a_gpu(seed: int) -> None:
    pytest.importorskip("tilelang")
    for tokens, experts, topk in random.Random(seed).sample(shapes("core"), 2):
        program = cuda.prim_func(experts, topk, cuda.plan(tokens, experts, topk))
        source = lower(program, **PASSES)
        assert "topk_gate_kernel" in source
        # A block barrier inside a branch that warps take apart would hang.
        assert "__syncthreads" not in source and "asm" not in source


def test_ascend_rows_fit_the_unified_buffer() -> None:
    for experts in (1, 64, 256, 512):
        rows = ascend.rows_per_tile(experts)
        padded = -(-experts // ascend.LANES) * ascend.LANES
        assert rows % 2 == 0
        assert ascend.STAGES * rows * 4 * (padded + 2 * ascend.LANES) <= ascend.UB_BYTES
    longest = {"num_tokens": 1, "num_experts": ascend.MAX_WIDE_EXPERTS, "num_topk": 1}
    assert ascend.supports(Case("longest", longest))
    longer = {**longest, "num_experts": ascend.MAX_WIDE_EXPERTS + 1}
    assert not ascend.supports(Case("longer", longer))


def test_ascend_programs_are_vector_kernels(seed: int) -> None:
    pytest.importorskip("tilelang")
    from ascendkit.emulator.lowered import lower

    _, experts, topk = random.Random(seed).choice(shapes("core"))
    source = lower(ascend.prim_func(experts, topk, 64))["source"]
    assert "__simd_vf__" in source and "asc_copy_gm2ub_align" in source
    assert "__cube__" not in source and "__simt_vf__" not in source


def modelled(experts: int, topk: int, tokens: int, folder: Path) -> Model:
    """The CUDA program on this CPU."""
    pytest.importorskip("tilelang")
    source = lower(cuda.prim_func(experts, topk, cuda.plan(tokens, experts, topk)), **PASSES)
    return Model(source, folder / f"{experts}-{topk}-{tokens}")
