"""Every Ascend program of the gates and of routing fits the chip at the largest shape it serves,
with the bytes that docs/gate.md states; a larger shape is refused with numbers before a launch."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from ascendkit.op import Case
from ascendkit.registry import op, ops
from tilekernels.gating import ascend_gate, ascend_program
from tilekernels.gating.gate import Gate
from tilekernels.machine import MAX_WORDS
from tilekernels.moe_topk_gate_backward import ascend_program as backward
from tilekernels.topk_gate.ascend import MAX_WIDE_EXPERTS

CORES = 64
DOCS = Path(__file__).parents[2] / "docs" / "gate.md"
MAX_EXPERTS = 6784
"""Of both gates."""
MAX_BACKWARD = 12416
"""Of the gradient of a gate."""
MAX_SCORES = 26624
"""Of a token, for topk_sum_and_topk_group_idx."""


def program(name: str, *args: Any, maker: str = "prim_func", file: str = "ascend") -> Any:
    """What makes a program of an op's Ascend file."""
    return lambda: getattr(op(f"tilekernels.{name}").load(file), maker)(*args)


def gate(**others: Any) -> Callable[[], Any]:
    """A gate with every option its op has, at the most experts and slots."""
    return lambda: ascend_program.prim_func(
        Gate(MAX_EXPERTS, 30, 2, "softmax", copies=3, **others), CORES
    )


FEW = frozenset(("bias", "mask", "fixed", "unmapped", "physical"))
LARGEST: dict[str, tuple[Callable[[], Any], ...]] = {
    "topk_gate": (program("topk_gate", MAX_WIDE_EXPERTS, 32, CORES),),
    "moe_topk_gate": (gate(options=FEW | {"image", "random", "scores"}),),
    "top2_sum_gate": (gate(options=FEW, groups=(32, 16), parallel=True),),
    "topk_sum_and_topk_group_idx": (
        program("topk_sum_and_topk_group_idx", 32, MAX_SCORES // 32, 2, 32, CORES),
    ),
    "moe_topk_gate_backward": (
        lambda: backward.prim_func(
            backward.Form(MAX_BACKWARD, 32, 32, 32, "sqrtsoftplus", True), CORES
        ),
    ),
    "normalize_weight": (program("normalize_weight", 32, CORES),),
    "group_count": (program("group_count", 8192, CORES),),
    "mask_indices_by_tp": (program("mask_indices_by_tp", CORES),),
    "inplace_unique_group_indices": (program("inplace_unique_group_indices", 32, CORES),),
    "get_fused_mapping": (
        program("get_fused_mapping", 1024, 32, CORES, maker="place_program", file="ascend_program"),
        program("get_fused_mapping", 1024, CORES, maker="count_program", file="ascend_program"),
    ),
    "expand_to_fused": (program("expand_to_fused", 1 << 20, 4, 32, CORES),),
    "reduce_fused": (
        program("reduce_fused", 1 << 20, 1, "float32", CORES),
        program("reduce_fused", 1 << 20, 32, "bfloat16", CORES, "e4m3f"),
    ),
}
"""What takes the most of the Unified Buffer, by op."""
GATES = ("moe_topk_gate", "top2_sum_gate")
SAME = {"aux_fi": "group_count", "expand_to_fused_with_sf": "expand_to_fused"}
"""Ops that launch the programs of another."""


def options(name: str) -> dict[str, bool]:
    """Pass options of an op's Ascend programs."""
    from tilelang import PassConfigKey

    module = ascend_gate if name in GATES else op(f"tilekernels.{name}").load("ascend")
    return {PassConfigKey[n].value: v for n, v in getattr(module, "PASSES", {}).items()}


@lru_cache
def stated() -> dict[str, int]:
    """Bytes of the Unified Buffer by op, in the table of the page."""
    rows = re.findall(r"^\| `(\w+)`.*\| ([\d,]+) of (?:216|248) KiB \|$", DOCS.read_text(), re.M)
    return {name: int(count.replace(",", "")) for name, count in rows}


def test_every_op_of_the_family_has_a_statement() -> None:
    served = {o.stem for o in ops().values() if o.component == "tilekernels" and o.has("ascend")}
    assert {*LARGEST, *SAME} <= served
    assert set(stated()) == {*LARGEST, *SAME}
    for name, other in SAME.items():
        assert stated()[name] == stated()[other]


@pytest.mark.emu
@pytest.mark.parametrize("name", LARGEST)
def test_largest_shape_fits(name: str) -> None:
    pytest.importorskip("tilelang")
    from ascendkit.emulator.findings.fits import fits

    needs = []
    for make in LARGEST[name]:
        for fit in fits(make(), options(name)):
            assert fit.ok, (fit.reason, fit.memories)
            needs += [m.need for m in fit.memories if m.space == "UB"]
    assert max(needs) == stated()[name]


@pytest.mark.parametrize(
    ("name", "params", "key"),
    [
        ("topk_gate", {"num_experts": MAX_WIDE_EXPERTS}, "num_experts"),
        ("moe_topk_gate", {"num_experts": MAX_EXPERTS}, "num_experts"),
        ("top2_sum_gate", {"num_experts": MAX_EXPERTS}, "num_experts"),
        ("moe_topk_gate_backward", {"num_experts": MAX_BACKWARD}, "num_experts"),
        ("topk_sum_and_topk_group_idx", {"num_groups": 1, "per_group": MAX_SCORES}, "per_group"),
        ("group_count", {"num_indices": MAX_WORDS // 2}, "num_indices"),
        ("aux_fi", {"num_indices": MAX_WORDS // 2}, "num_indices"),
        ("mask_indices_by_tp", {"num_indices": MAX_WORDS // 2}, "num_indices"),
        ("get_fused_mapping", {"num_tokens": MAX_WORDS // 2, "num_topk": 1}, "num_tokens"),
    ],
)
def test_one_more_is_refused_with_numbers(name: str, params: dict[str, int], key: str) -> None:
    supports = op(f"tilekernels.{name}").load("ascend").supports
    assert supports(Case("largest", params))
    refused = supports(Case("larger", {**params, key: params[key] + 1}))
    assert not refused and len(re.findall(r"\d+", refused.reason)) >= 2
