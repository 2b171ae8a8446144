"""Several outputs, optional ones, arguments an op writes, gradients: one dispatch for all."""

from __future__ import annotations

import importlib

import pytest
import torch

from ascendkit.check.correctness import check_case
from ascendkit.check.tracing import check_traces
from ascendkit.schema import names, outputs, parse

PAIR = {
    "__init__": """
from ascendkit import dispatch
SCHEMA = "(Tensor x, int k, bool square) -> (Tensor, Tensor)"

def allocate(x, k, square):
    import torch
    return torch.empty_like(x), (x.new_empty((x.shape[0], 2)) if square else None)

def STEM(x, k, square, *, out=None, platform=None):
    return dispatch.call("toy.STEM", (x, k, square), {"k": k}, out=out, platform=platform)
""",
    "reference": """
def reference(x, k, square):
    return x * k, (x[:, None] * x.new_tensor([1.0, 2.0]) if square else None)
""",
    "oracle": """
def oracle(x, k, square):
    return x * k, (x[:, None] * [[1.0, 2.0]] if square else None)
""",
    "ascend": """
from ascendkit import Support
def supports(case):
    return Support(True)
def run(x, k, square, *, out):
    first, second = out
    first.copy_(x * k)
    if second is not None:
        second[:, 0] = x
        second[:, 1] = 2 * x
""",
    "cases": """
from ascendkit import Case, Contract
CONTRACT = Contract("bitwise")
def cases():
    for square in (True, False):
        for n in (0, 5):
            yield Case(f"{n}-{square}", {"n": n, "k": 3, "square": square})
def inputs(case, seed):
    from ascendkit.testing import generator, normal
    p = case.params
    return normal((p["n"],), generator(seed)), p["k"], p["square"]
""",
}
INPLACE = {
    "__init__": """
from ascendkit import dispatch
SCHEMA = "(Tensor(a!) x, int k) -> ()"

def allocate(x, k):
    return None

def STEM(x, k, *, platform=None):
    dispatch.call("toy.STEM", (x, k), {"k": k}, platform=platform)
""",
    "reference": "def reference(x, k):\n    x.mul_(k)\n",
    "oracle": "def oracle(x, k):\n    x *= k\n",
    "ascend": """
from ascendkit import Support
def supports(case):
    return Support(True)
def run(x, k, *, out):
    assert out is None
    x.mul_(k)
""",
}
BACKWARD = """
def setup_context(ctx, inputs, output):
    ctx.k = inputs[1]

def backward(ctx, first, second):
    return first * ctx.k, None, None, None
"""


def function(op):
    return getattr(importlib.import_module(op.name), op.stem)


def passes(op, seed):
    for platform in ("reference", "emulator"):
        for case in op.cases():
            if not case.error:
                got = check_case(op, platform, case, seed)
                assert got.status == "pass", got
    for case in op.cases():
        got = check_traces(op, case, seed)
        assert got.status == "pass", got.message


def test_several_outputs_some_not_wanted(toy, seed):
    op = toy("pair", **PAIR)
    passes(op, seed)
    call, x = function(op), torch.arange(3.0)
    out = torch.empty(3), torch.empty(3, 2)
    assert call(x, 2, True, out=out) is out and out[1][2, 1] == 4
    some = (torch.empty(3), None)
    assert call(x, 2, False, out=some, platform="emulator") is some and some[0][2] == 4

    @torch.compile(backend="aot_eager", fullgraph=True)
    def compiled(x, out):
        call(x, 2, False, out=out)
        return call(x, 2, True)

    some = (torch.empty(3), None)
    first, second = compiled(x, some)
    assert torch.equal(first, x * 2) and torch.equal(some[0], x * 2) and second.shape == (3, 2)


def test_a_wrong_second_output_is_found(toy, seed):
    op = toy("wrong", **{**PAIR, "ascend": PAIR["ascend"].replace("2 * x", "x")})
    got = check_case(op, "emulator", next(c for c in op.cases() if c.name == "5-True"), seed)
    assert got.status == "fail" and "output[1]" in got.message


def test_an_op_that_works_in_place(toy, seed):
    op = toy("inplace", **INPLACE)
    passes(op, seed)
    call, x = function(op), torch.ones(3)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def compiled(x):
        call(x, 2)
        return x + 1

    assert call(x, 3) is None and x.tolist() == [3, 3, 3]
    assert compiled(x).tolist() == [7, 7, 7] and x.tolist() == [6, 6, 6]


def test_a_gradient_in_eager_and_compiled_calls(toy, seed):
    op = toy("graded", **PAIR, backward=BACKWARD)
    passes(op, seed)
    call = function(op)
    for graded in (call, torch.compile(call, backend="aot_eager", fullgraph=True)):
        x = torch.ones(4, requires_grad=True)
        graded(x, 5, True)[0].sum().backward()
        assert x.grad is not None and x.grad.tolist() == [5.0] * 4
    with pytest.raises(ValueError, match="got out= and an input that requires a gradient"):
        call(x, 5, False, out=(torch.empty(4), None))
    with torch.no_grad():
        assert call(x, 5, False)[1] is None


def test_a_gradient_through_written_arguments_is_refused(toy):
    init = PAIR["__init__"].replace("Tensor x", "Tensor(a!) x")
    op = toy("both", **{**PAIR, "__init__": init}, backward=BACKWARD)
    with pytest.raises(ValueError, match="a gradient and mutated arguments"):
        function(op)(torch.ones(2, requires_grad=True), 1, False)


def test_schemas_in_parts():
    found = parse("(Tensor x, Tensor(a!)? y, int k=3) -> (Tensor, Tensor)")
    assert names(found.arguments) == ("x", "y", "k") and found.mutated == (1,)
    assert found.written((1, 2)) == (2,) and found.written((1,)) == ()
    assert found.outs == ("Tensor(out0!)? out0", "Tensor(out1!)? out1")
    assert outputs(None) == () and outputs(5) == (5,) and outputs([5, None]) == (5, None)
