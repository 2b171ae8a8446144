"""Ops around the gate: reference, emulator, gradients, and the CUDA text of small ones on a CPU."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ascendkit import platform as platforms
from ascendkit.check.correctness import check_case
from ascendkit.registry import op
from ascendkit.testing import generator
from tests.tilekernels.cuda_model import Model, lower
from tilekernels.cluster import CLUSTER
from tilekernels.expand_to_fused import expand_to_fused
from tilekernels.expand_to_fused_with_sf import expand_to_fused_with_sf
from tilekernels.get_fused_mapping import get_fused_mapping
from tilekernels.machine import grain
from tilekernels.normalize_weight import normalize_weight
from tilekernels.reduce_fused import reduce_fused

MAPPING = {
    "TL_DISABLE_THREAD_STORAGE_SYNC": True,
    "TL_DISABLE_SAFE_MEMORY_ACCESS": True,
    "TL_DISABLE_SHARED_MEMORY_REUSE": True,
}
OPS = (
    "normalize_weight",
    "aux_fi",
    "group_count",
    "mask_indices_by_tp",
    "inplace_unique_group_indices",
    "get_fused_mapping",
    "expand_to_fused",
    "expand_to_fused_with_sf",
    "reduce_fused",
)


def failures(name: str, platform: str, level: str, seed: int, few: int = 0) -> list[str]:
    """What the check loop finds in every case, or in ``few`` spread over the list."""
    state = platforms.available(platform)
    if not state:
        pytest.skip(f"{platform}: {state.reason}")
    found = op(f"tilekernels.{name}")
    if platform not in found.platforms():
        pytest.skip(f"{name} has no file for {platform}")
    cases = [c for c in found.cases(level) if not (few and c.error)]
    if few:
        cases = cases[:: -(-len(cases) // few)]
    outcomes = [check_case(found, platform, c, seed) for c in cases]
    assert any(o.status == "pass" for o in outcomes)
    return [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


@pytest.mark.parametrize("name", OPS)
def test_reference_passes(name: str, seed: int) -> None:
    assert not failures(name, "reference", "smoke", seed)


@pytest.mark.emu
@pytest.mark.parametrize("name", OPS)
def test_emulator_passes(name: str, seed: int) -> None:
    assert not failures(name, "emulator", "smoke", seed, few=3)


@pytest.mark.cuda
@pytest.mark.parametrize("name", OPS)
def test_cuda_passes(name: str, seed: int) -> None:
    assert not failures(name, "cuda", "core", seed)


def test_mapping_trims_to_what_is_needed(seed: int) -> None:
    idx = torch.tensor([[0, 2], [2, -1], [2, 0]])
    *maps, sizes = get_fused_mapping(idx, 4, 0, 4)
    assert sizes == [4, 0, 4, 0] and len(maps[0]) == 8
    assert maps[0].tolist() == [0, 0, -1, -1, 2, 2, 2, -1]
    assert maps[2].tolist() == [0, 5, -1, -1, 1, 2, 4, -1]
    assert get_fused_mapping(idx, 4, 16, 4)[-1] == []
    assert get_fused_mapping(idx, 4, 0, 4, True)[3].eq(-1).all()


def test_gradients_are_those_of_autograd(seed: int) -> None:
    torch.manual_seed(seed)
    idx = torch.randint(-1, 5, (6, 3))
    experts, _, _, places, *_ = get_fused_mapping(idx, 5, 0, 4)
    x = torch.randn(6, 8, requires_grad=True)
    w = torch.rand(6, 3, requires_grad=True)
    _, normal = normalize_weight(w)
    got = reduce_fused(expand_to_fused(x, places, experts), normal, places)
    got.square().sum().backward()
    a, b = (t.detach().double().requires_grad_() for t in (x, w))
    share = (b / b.sum(-1, keepdim=True) * (places >= 0)).sum(-1, keepdim=True)
    (a * share).square().sum().backward()
    assert torch.allclose(x.grad.double(), a.grad, atol=1e-5)
    assert torch.allclose(w.grad.double(), b.grad, atol=1e-4, rtol=1e-4)


def test_maps_of_the_expansion_fit_each_other() -> None:
    x, flat = torch.randn(2, 4), torch.tensor([0, 0, -1, 1], dtype=torch.int32)
    places = torch.tensor([[0, 3], [-1, 2]], dtype=torch.int32)
    sf = (x, torch.ones(2, 1))
    for places[1, 1], rule in ((2, "has an expert"), (3, "no place before it names")):
        for call in (lambda: expand_to_fused(x, places, flat),
                     lambda: expand_to_fused_with_sf(sf, 128, places, flat)):  # fmt: skip
            with pytest.raises(ValueError, match=rf"token_topk_to_pos\[1, 1\].*{rule}"):
                call()
    places[1, 1] = 1
    expand_to_fused(x, places, flat)
    out = torch.zeros(8, 4)
    with pytest.raises(ValueError, match="out: got 'memory of x'"):
        expand_to_fused(out[2:4], places, flat, out=out[:4])
    expand_to_fused(out[4:6], places, flat, out=out[:4])


def test_rows_alone_or_with_scales() -> None:
    x, places = torch.randn(4, 8), torch.zeros(1, 1, dtype=torch.int32)
    for wrong in ((x,), (x, x, x)):
        with pytest.raises(ValueError, match="reduce_fused x: got"):
            reduce_fused(wrong, None, places)
        with pytest.raises(ValueError, match="expand_to_fused_with_sf x: got"):
            expand_to_fused_with_sf(wrong, 128, places, places[0])


MAPS = ("pos_to_expert", "pos_to_token", "pos_to_token_topk", "places")
MAPS += ("expert_start", "expert_end", "sizes")


@pytest.mark.parametrize("launches", [1, 2])
def test_cuda_text_of_the_mapping(launches: int, seed: int, tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    from tilekernels.get_fused_mapping import cuda_program as programs
    from tilekernels.get_fused_mapping.reference import reference

    g = generator(seed)
    for i, (tokens, topk, experts, align) in enumerate(((1300, 5, 40, 8), (3, 3, 1, 4))):
        idx = torch.randint(-1, experts + 1, (tokens, topk), generator=g)
        size = tokens * topk + align * experts - 9
        flat, n = idx.flatten(), idx.numel()
        want = reference(idx, experts, size, align)
        out = [torch.full_like(t.flatten(), -9) for t in want]
        given = dict(zip(MAPS, out), idx=flat, alignment=align)
        given |= {"num_indices": n, "X": size, "num_expanded_tokens": size}
        folder = tmp_path / str(i)
        if launches == 1:
            program = programs.cluster_program(experts, topk, 2 - n % 2)
            mapped = Model(lower(program, **MAPPING), folder)
            mapped(programs.RUNS, seed, CLUSTER, **given)
        else:
            counts = torch.full((programs.RUNS, experts), -7, dtype=torch.int32)
            count = Model(lower(programs.count_program(experts), **MAPPING), folder / "count")
            count(programs.RUNS, seed, idx=flat, counts=counts, num_indices=n)
            place = Model(lower(programs.place_program(experts, topk), **MAPPING), folder / "place")
            place(programs.RUNS, seed, counts=counts, **given)
        for name, got, right in zip(MAPS, out, want):
            assert torch.equal(got, right.flatten()), (name, tokens)


@pytest.mark.parametrize("as_float", [False, True])
def test_cuda_text_of_a_histogram_in_a_cluster(as_float: bool, seed: int, tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    from tilekernels.group_count.cuda_program import count_in_cluster

    groups, idx = 600, torch.randint(-2, 602, (9001,), generator=generator(seed))
    kind = torch.float32 if as_float else torch.int32
    got = torch.full((groups,), -1, dtype=kind)
    options = {"TL_DISABLE_SAFE_MEMORY_ACCESS": True}
    model = Model(lower(count_in_cluster(groups, 1, as_float), **options), tmp_path)
    model(CLUSTER, seed, CLUSTER, indices=idx, out=got, n=len(idx), divisor=7.0)
    counts = torch.bincount(idx[(idx >= 0) & (idx < groups)], minlength=groups)
    assert torch.equal(got, counts.float() * groups / 7 if as_float else counts.int())


def test_few_gaps_are_looked_for_by_few_blocks_of_the_expansion() -> None:
    from tilekernels.expand_to_fused import cuda

    dense, padded = cuda.plan(14336, 16, 32768, 32768), cuda.plan(14336, 16, 40960, 32768)
    assert dense.positions == cuda.FEW_GAPS and dense.ahead and dense.room
    assert padded.positions == 1 and not padded.ahead and not padded.room
    # An eighth of the positions without an entry, one more, and entries without a position.
    assert [cuda.plan(512, 16, 8, n).positions for n in (7, 6, 9)] == [8, 1, 8]


@pytest.mark.parametrize("scaled", [False, True])
def test_cuda_text_of_the_expansion(scaled: bool, seed: int, tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    from tilekernels.expand_to_fused import cuda
    from tilekernels.expand_to_fused.cuda_program import FETCHED, Scales, prim_func

    found = op(f"tilekernels.expand_to_fused{'_with_sf' if scaled else ''}")
    legal = [c for c in found.cases("core") if not c.error and c.params["num_tokens"] > 4]
    for i, case in enumerate(random.Random(seed).sample(legal, 2)):
        args = found.inputs(case, seed)
        x, places, experts = (args[0], *args[3:5]) if scaled else args
        want = found.load("reference").reference(*args)
        data = want[0] if scaled else want
        row, size = x.shape[1] * x.element_size(), len(experts)
        plan = cuda.plan(row, grain(row), size, places.numel())
        plan = replace(plan, ahead=FETCHED if plan.ahead else 0, room=i * 64)
        out = torch.full_like(data.view(torch.uint8), 0x77)
        given = {"x": x, "places": places, "experts": experts, "out": out}
        given |= {"N": len(x), "num_tokens": len(x), "X": size, "num_expanded_tokens": size}
        scales = None
        if scaled:
            sf, transposed = args[1], args[5]
            scales, pitch = Scales(sf.shape[1], transposed), -(-size // 4) * 4
            shape = (sf.shape[1], pitch) if transposed else (size, sf.shape[1])
            given |= {"sf": sf, "pitch": pitch, "out_sf": torch.full(shape, 7, dtype=torch.int32)}
        program = prim_func(row, places.shape[1], plan, scales)
        options = {"TL_DISABLE_SAFE_MEMORY_ACCESS": True}
        model = Model(lower(program, **options), tmp_path / str(i))
        blocks = cuda.num_blocks(plan, x, out)
        model(blocks, seed, blocks=blocks, **given)
        assert torch.equal(out, data.view(torch.uint8)), case.name
        if scaled:
            got = given["out_sf"][:, :size].T if transposed else given["out_sf"]
            assert torch.equal(got, want[1].contiguous().view(torch.int32)), case.name
