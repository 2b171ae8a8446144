"""Both loops on an NVIDIA GPU, with toy ops in plain torch."""

from __future__ import annotations

import json

import pytest
import torch

from ascendkit.bench import Ceilings, do_bench
from ascendkit.check.__main__ import main
from ascendkit.check.correctness import check_case

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="no CUDA device: run it on a machine with one"
    ),
]

CASES = """
from ascendkit import Case, Contract
CONTRACT = Contract("bitwise", oracle="NumPy product")

def cases():
    for n in (1, 1 << 10, 1 << 20, 1 << 26):
        yield Case(f"n{n}", {"n": n, "k": 3}, bench=True)
    yield Case("bad_k", {"n": 4, "k": -1}, error="ValueError")
    yield Case("nan", {"n": 4, "k": 1, "nan": True}, error="ValueError")

def inputs(case, seed):
    from ascendkit.testing import generator, normal
    x = normal((case.params["n"],), generator(seed))
    if case.params.get("nan"):
        x[0] = float("nan")
    return x, case.params["k"]
"""
CUDA = """
import torch
from ascendkit import Support
def supports(case):
    return Support(True)
def run(x, k, *, out):
    torch.mul(x, k, out=out)
"""
INIT_LINE = 'if x.device.type != "meta" and'


def test_a_right_op_passes_and_is_measured_at_the_ceiling(toy, capsys):
    init = toy.files["__init__"].replace(INIT_LINE, 'if x.device.type == "cpu" and')
    toy("scale", __init__=init, cases=CASES, cuda=CUDA)
    assert main(["platform=cuda", "output=json"]) == 0
    *lines, summary = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert summary["cases"] == {"pass": 5, "skip": 1}
    by_case = {x["case"]: x for x in lines if x["record"] == "bench"}
    big, one = by_case[f"n{1 << 26}"], by_case["n1"]
    # The op is the ceiling's own kernel.
    assert 0.9 < big["achieved"]["gbs"] / big["ceiling"]["gbs"] < 1.1
    assert big["bound"] == "hbm" and big["l2_state"] == "cold"
    assert one["bound"] == "launch" and one["l2_state"] == "warm"
    assert one["time_us"]["p50"] < 5
    for x in by_case.values():
        assert x["ceiling"]["bytes"] == pytest.approx(x["bytes"]["minimum"], rel=1e-2, abs=8)
        assert "graph" in x["method"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("torch.mul(x[:-1], k, out=out[:-1])", "1 of 1024 never written, the first at (1023,)"),
        ("torch.mul(x, k, out=out); out.as_strided((1025,), (1,))[1024] = 0", "behind the output"),
        ("torch.mul(x, k, out=out); x[0] = 1", "inputs changed"),
        ("torch.mul(x, k + 1, out=out)", "1024 of 1024 differ"),
    ],
)
def test_each_kind_of_wrong_is_found(toy, seed, line, told):
    init = toy.files["__init__"].replace(INIT_LINE, 'if x.device.type == "cpu" and')
    text = CUDA.replace("torch.mul(x, k, out=out)", line)
    op = toy("wrong", __init__=init, cases=CASES, cuda=text)
    case = next(c for c in op.cases() if c.name == "n1024")
    got = check_case(op, "cuda", case, seed)
    assert got.status == "fail" and told in got.message


def test_what_cannot_be_captured_is_timed_and_the_device_survives():
    x = torch.ones(1 << 20, device="cuda")
    got = do_bench([lambda: x.sum().item()], "cuda")
    assert "not captured" in got.method and got.p50 > 1
    assert "graph" in do_bench([lambda: x.mul_(1)], "cuda").method


def test_ceilings_are_plausible_and_cached():
    ceilings = Ceilings("cuda")
    peak = ceilings.best(1 << 30, 1 << 30)
    assert ceilings.best(1 << 30, 1 << 30) is peak
    small = ceilings.best(1 << 16, 1 << 16)
    assert 300 < peak.gbs < 12000 and small.us < 10 and small.us > ceilings.launch_us() * 0.5
