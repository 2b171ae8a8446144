"""What an op registers with torch is held against what it does."""

from __future__ import annotations

import pytest

from ascendkit.check.tracing import check_traces, traceable


def traced(op, seed):
    return check_traces(op, next(op.cases()), seed)


def test_a_truthful_op_passes_in_both_forms(toy, seed):
    op = toy("honest")
    got = traced(op, seed)
    assert traceable(op) and got.status == "pass", got.message
    assert got.judge == "torch.library.opcheck"


@pytest.mark.parametrize(
    ("file", "text", "other"),
    [
        ("__init__", "torch.empty_like(x)", "torch.empty_like(x, dtype=torch.float64)"),
        ("__init__", "torch.empty_like(x)", "x.new_empty(x.shape[0] + 1)"),
        ("reference", "return x * k", "return x"),
        ("reference", "return x * k", "return x.mul_(k)"),
        ("reference", "return x * k", "return (x * k)[: x.numel() // 2]"),
    ],
)
def test_an_untruthful_one_fails(toy, seed, file, text, other):
    op = toy("untrue", **{file: toy.files[file].replace(text, other)})
    got = traced(op, seed)
    assert got.status == "fail" and got.message


def test_an_op_without_a_schema_is_not_traced(toy):
    init = toy.files["__init__"].replace("SCHEMA = ", "_unused = ")
    assert not traceable(toy("untraced", __init__=init))
    assert not traceable(toy("broken", __init__="1 / 0"))
