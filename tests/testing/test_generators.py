"""Input generators: reproducible, and each one has the property its name promises."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from ascendkit import testing as t

SHAPES = [(3, 32), (0, 8), (4, 0), (1, 1), (2, 3, 17)]


@pytest.mark.parametrize("kind", t.SCORES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scores_have_their_shape_and_repeat(kind, shape, seed):
    x = t.scores(kind, shape, seed)
    assert x.shape == shape and x.dtype == torch.float32
    assert t.bitwise(x, t.scores(kind, shape, seed))
    assert t.scores(kind, shape, seed, torch.bfloat16).dtype == torch.bfloat16
    assert x.isfinite().all() or kind not in t.FINITE_SCORES


def test_scores_are_what_they_are_called(seed):
    shape = (16, 256)
    draw = {kind: t.scores(kind, shape, seed) for kind in t.SCORES}
    bits = draw["shared_prefix"].view(torch.int32)
    assert (bits >> 8).unique().numel() == 1 and bits.unique().numel() > 100
    assert draw["all_equal"].unique().numel() == 1
    assert draw["two_valued"].unique().numel() == 2
    assert (draw["relu"] == 0).float().mean() > 0.3
    assert draw["ties"].unique().numel() < 40
    assert (draw["ascending"].diff(dim=-1) > 0).all()
    assert (draw["descending"].diff(dim=-1) < 0).all()
    zeros = draw["signed_zeros"]
    assert (zeros == 0).all() and zeros.signbit().any() and not zeros.signbit().all()
    tiny = torch.finfo(torch.float32).tiny
    assert ((draw["subnormal"] > 0) & (draw["subnormal"] < tiny)).all()
    assert draw["all_nan"].isnan().all() and draw["all_minus_inf"].isneginf().all()
    for kind in ("nan", "inf", "minus_inf"):
        assert 0 < (~draw[kind].isfinite()).sum() < draw[kind].numel() / 2
    assert draw["nan_front"][:, 0].isnan().all() and not draw["nan_front"][:, -1].isnan().any()
    assert draw["minus_inf_end"][:, -1].isneginf().all()


@pytest.mark.parametrize("where", t.PLACES)
def test_invalid_indices_sit_where_told(where, seed):
    x = t.indices(9, 40, 64, seed, invalid=where)
    bad = x == -1
    assert bad.any() and (bad.all() == (where == "everywhere"))
    assert bool(bad[:, 0].all()) == (where in ("front", "everywhere"))
    assert bool(bad[:, -1].all()) == (where in ("end", "everywhere"))
    good = x[~bad]
    assert ((good >= 0) & (good < 64)).all()


def test_indices_are_distinct_or_say_why_not(seed):
    x = t.indices(50, 8, 8, seed)
    assert (x.sort(dim=-1).values == torch.arange(8)).all()
    with pytest.raises(ValueError, match="at most limit 7"):
        t.indices(1, 8, 7, seed)
    assert t.indices(5, 3, 0, seed, distinct=False).eq(-1).all()
    assert t.indices(0, 3, 9, seed).shape == (0, 3)


@pytest.mark.parametrize("kind", t.ROUTINGS)
def test_routing_is_distinct_in_range_and_skewed(kind, seed):
    x = t.routing(kind, 500, 4, 32, seed, num_ranks=4)
    assert x.shape == (500, 4) and x.dtype == torch.int64
    assert (x.sort(dim=-1).values.diff(dim=-1) > 0).all() and x.min() >= 0 and x.max() < 32
    count = x.flatten().bincount(minlength=32)
    by_rank = count.view(4, 8).sum(-1)
    if kind == "uniform":
        assert count.min() > 20
    elif kind == "zipf":
        assert count.max() > 4 * count.median()
    elif kind == "one_hot_expert":
        assert count.max() == 500 and count.sort().values[-2] < 200
    elif kind == "one_hot_rank":
        assert (by_rank > 0).sum() == 1
    else:
        assert by_rank[1] == by_rank[3] == 0 and by_rank[0] > 0


def test_routing_edges(seed):
    assert t.routing("uniform", 0, 4, 8, seed).shape == (0, 4)
    assert t.routing("one_hot_rank", 3, 8, 8, seed, num_ranks=8).shape == (3, 8)
    assert t.routing("uniform", 3, 0, 0, seed).shape == (3, 0)
    for bad in ({"num_topk": 9}, {"num_ranks": 3}, {"num_ranks": 0}):
        args = {"num_tokens": 1, "num_topk": 2, "num_experts": 8, "seed": seed, **bad}
        with pytest.raises(ValueError, match="nearest legal"):
            t.routing("uniform", **args)
    with pytest.raises(ValueError, match="nearest: zipf"):
        t.routing("zip", 1, 1, 1, seed)


def test_scales_are_what_they_are_called(seed):
    draw = {kind: t.scales(kind, (8, 64), seed) for kind in t.SCALES}
    for x in draw.values():
        assert x.dtype == torch.float32 and (x >= 0).all() and x.isfinite().all()
    mantissa = {k: x.view(torch.int32) & 0x7FFFFF for k, x in draw.items()}
    assert (mantissa["power_of_two"] == 0).all()
    assert (mantissa["halfway"] == 0x400000).all()
    assert (mantissa["above_power"] == 1).all()
    assert (mantissa["non_power_of_two"] != 0).float().mean() > 0.9
    assert (draw["subnormal"] < torch.finfo(torch.float32).tiny).all()
    assert (draw["zero"] == 0).all() and 0 < (draw["some_zero"] == 0).sum() < 512


def test_amax_ties_hold_the_maximum_twice_with_both_signs(seed):
    x = t.amax_ties(5, 3, 32, seed).view(5, 3, 32)
    top = x.abs().amax(-1, keepdim=True)
    assert ((x == top).any(-1) & (x == -top).any(-1)).all()
    assert t.amax_ties(2, 0, 32, seed).shape == (2, 0)


def test_wide_values_use_many_exponents_and_stay_finite(seed):
    x = t.wide((4096,), t.generator(seed))
    assert x.isfinite().all() and x.abs().log2().std() > 40
    assert t.wide((4096,), t.generator(seed), torch.bfloat16).isfinite().all()


def test_sizes_surround_alignments():
    assert t.around(16, 64) == (15, 16, 17, 63, 64, 65)
    found = t.sizes(128, low=1, high=200)
    assert {1, 7, 127, 128, 129} <= set(found) and max(found) <= 200 and min(found) == 1
    assert all(n % 4 == 0 for n in t.sizes(64, multiple_of=4)) and 0 in t.sizes(64, multiple_of=4)


def test_sub_seeds_differ_by_name_and_are_stable():
    assert t.sub_seed(1, "op", "case") == t.sub_seed(1, "op", "case") != t.sub_seed(2, "op", "case")
    assert t.sub_seed(1, "a", "b") != t.sub_seed(1, "b", "a")
    assert 0 <= t.sub_seed(1) < 2**63


def test_importing_the_package_imports_no_torch():
    code = "import ascendkit.testing, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
