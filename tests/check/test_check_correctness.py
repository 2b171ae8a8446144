"""The correctness loop finds each kind of wrong, and passes what is right."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from ascendkit.check.correctness import check_case
from ascendkit.check.launches import Launches
from ascendkit.op import Case, Contract
from ascendkit.testing import Verdict
from ascendkit.testing.memory import POISONS

PLAIN = Case("plain", {"n": 33, "k": 3})


def run(op, seed, case=PLAIN, platform="emulator"):
    return check_case(op, platform, case, seed)


@pytest.mark.parametrize("platform", ["reference", "emulator"])
def test_a_right_op_passes_every_case(toy, seed, platform):
    op = toy("good")
    for case in op.cases("full"):
        got = run(op, seed, case, platform)
        skipped = platform == "emulator" and case.name == "large"
        assert got.status == ("skip" if skipped else "pass"), got
        if not case.error and not skipped:
            assert got.covered
            assert got.judge == ("NumPy product" if platform == "reference" else "reference")


BODY = "from ascendkit import Support\ndef supports(case):\n    return Support(True)\n"


def ascend(*lines):
    return BODY + "def run(x, k, *, out):\n" + "".join(f"    {line}\n" for line in lines)


WRONG = {
    "value": (ascend("out.copy_(x * k)", "out[7] += 1"), "1 of 33 differ; worst at (7,)"),
    "unwritten": (
        ascend("out[:-2].copy_((x * k)[:-2])"),
        "2 of 33 never written, the first at (31",
    ),
    "behind": (
        ascend("out.copy_(x * k)", "out.as_strided((34,), (1,))[33] = 0"),
        "4 bytes written outside the output, the first at byte 0 behind",
    ),
    "before": (
        ascend("out.copy_(x * k)", "out.as_strided((1,), (1,), out.storage_offset() - 1)[0] = 0"),
        "at byte -4 before",
    ),
    "input": (ascend("out.copy_(x * k)", "x[3] = 0"), "inputs changed"),
    "repeat": (
        BODY + "count = [0]\ndef run(x, k, *, out):\n    count[0] += 1\n    out.copy_(x * k)\n"
        "    out[5] += count[0] > 1\n",
        "second launch on the same buffers",
    ),
    "accumulates": (ascend("out.add_(x * k)"), "NaN/inf mask"),
    "raises": (ascend("1 / 0"), "ZeroDivisionError: division by zero (ascend.py:5)"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_each_kind_of_wrong_is_found(toy, seed, kind):
    text, told = WRONG[kind]
    got = run(toy("wrong", ascend=text), seed)
    assert got.status == "fail" and told in got.message


@pytest.mark.emu
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_right_value_with_a_finding_fails_on_the_emulator(toy, seed, blocks, monkeypatch):
    pytest.importorskip("tilelang")
    monkeypatch.delenv("ASCENDKIT_EMULATOR_CHECK", raising=False)
    text = ascend(
        "from ascendkit.emulator.lowered import LoweredKernel",
        "from tests.emulator.kernels.shared import scaled",
        f"LoweredKernel(scaled(x.numel(), float(k), {blocks}))(x, out)",
    )
    op, case = toy("shared", ascend=text), Case("plain", {"n": 64, "k": 3})
    got = run(op, seed, case)
    assert got.status == ("pass" if blocks == 1 else "fail"), got
    assert ("AK-RACE-008" in got.message and "main_kernel" in got.message) == (blocks == 2)
    monkeypatch.setenv("ASCENDKIT_EMULATOR_CHECK", "0")
    assert run(op, seed, case).status == "pass"


@pytest.mark.parametrize("pattern", POISONS)
def test_an_output_that_happens_to_look_like_poison_is_not_unwritten(pattern):
    def function(x, *, out, platform):
        out.view(torch.uint8).fill_(pattern)
        return out

    module = SimpleNamespace(allocate=torch.empty_like)
    launches = Launches(function, module, (torch.ones(5),), "reference")
    agrees = Verdict(True)
    assert launches.faults(Contract("bitwise"), agrees, lambda got: agrees) == []


def test_an_op_may_declare_what_it_changes(toy, seed):
    init = toy.files["__init__"].replace("Tensor x", "Tensor(a!) x")
    both = {
        "__init__": init,
        "reference": "def reference(x, k):\n    y = x * k\n    x.zero_()\n    return y\n",
        "oracle": "def oracle(x, k):\n    y = x * k\n    x[:] = 0\n    return y\n",
    }
    op = toy("inplace", **both, ascend=ascend("out.copy_(x * k)", "x.zero_()"))
    for platform in ("reference", "emulator"):
        assert run(op, seed, platform=platform).status == "pass"
    op = toy("forgets", **both, ascend=ascend("out.copy_(x * k)", "x[1:].zero_()"))
    assert "output[1]: 1 of 33 differ" in run(op, seed).message


def test_nondeterministic_ops_are_judged_twice_instead(toy, seed):
    cases = toy.files["cases"].replace(
        'Contract("bitwise"', 'Contract("ulp", limit=2, deterministic=False'
    )
    jitter = BODY + (
        "import torch\nstep = [{first}, {second}]\ndef run(x, k, *, out):\n"
        "    out.copy_((x * k).view(torch.int32).add(step.pop(0)).view(torch.float32))\n"
    )
    op = toy("jitter", cases=cases, ascend=jitter.format(first=0, second=2))
    assert run(op, seed).status == "pass"
    strict = cases.replace(", deterministic=False", "")
    op = toy("promises", cases=strict, ascend=jitter.format(first=0, second=1))
    assert "second launch" in run(op, seed).message
    op = toy("drift", cases=cases, ascend=jitter.format(first=0, second=3))
    assert "second launch" in run(op, seed).message


def test_without_out_and_allocate_nothing_written_still_shows(toy, seed):
    init = (
        "import torch\nSCHEMA = '(Tensor x, int k) -> Tensor'\n"
        "def functional(x, k, *, platform=None):\n"
        "    y = torch.empty_like(x)\n    y[1:] = x[1:] * k\n    return y\n"
    )
    got = run(toy("functional", __init__=init), seed)
    assert got.status == "fail" and "mask" in got.message and not got.covered


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("out[0].copy_(x * k); out[1].copy_(x - k)", ""),
        (
            "out[0].copy_(x * k); out[1][:-1].copy_((x - k)[:-1])",
            "output[1]: 1 of 33 never written",
        ),
        (
            "out[0].copy_(x * k); out[1].copy_(x - k); out[1].as_strided((34,), (1,))[33] = 0",
            "output[1]: 4 bytes written outside the output",
        ),
        ("out[0].copy_(x * k); out[1].copy_(x)", "output[1]: 33 of 33 differ"),
    ],
)
def test_several_outputs_without_out_are_guarded_too(toy, seed, line, told):
    init = toy.files["__init__"].replace("out=None, ", "").replace("out=out", "out=None")
    init = init.replace("Tensor)", "(Tensor, Tensor))").replace(
        "    return torch.empty_like(x)\n", "    return Pair((torch.empty_like(x), x.clone()))\n"
    )
    init += "class Pair(tuple):\n    def numel(self):\n        return self[0].numel()\n"
    reference = "def reference(x, k):\n    return x * k, x - k\n"
    op = toy("pair", __init__=init, reference=reference, ascend=ascend(line))
    got = run(op, seed)
    assert got.covered and told in got.message
    assert got.status == ("fail" if told else "pass")


def test_out_must_come_back(toy, seed):
    init = toy.files["__init__"]
    init = (
        init.replace("    return dispatch", "    y = dispatch").rstrip()
        + "\n    return y.clone()\n"
    )
    got = run(toy("stranger", __init__=init), seed)
    assert "another object" in got.message


def test_allocate_must_tell_the_truth_about_the_reference(toy, seed):
    init = toy.files["__init__"]
    init = init.replace("torch.empty_like(x)", "torch.empty_like(x, dtype=torch.float64)")
    got = run(toy("liar", __init__=init), seed, platform="reference")
    assert got.status == "fail" and "allocate says" in got.message


def test_the_reference_needs_a_judge_and_can_be_wrong(toy, seed):
    got = run(toy("unjudged", oracle=None), seed, platform="reference")
    assert got.status == "fail" and "nothing judges the reference" in got.message
    got = run(toy("off", reference="def reference(x, k):\n    return x * k + 1\n"), seed,
              platform="reference")  # fmt: skip
    assert got.status == "fail" and "33 of 33" in got.message


def test_invariants_can_judge(toy, seed):
    law = (
        "def invariants(result, x, k):\n"
        "    if (result * x < 0).any():\n        yield 'sign changed'\n"
        "    if abs(result).sum() > 0:\n        yield 'not zero'\n"
    )
    got = run(toy("laws", oracle=law), seed, platform="reference")
    assert (got.status, got.message) == ("fail", "not zero")
    got = run(toy("lawful", oracle=law.replace("> 0:", "< 0:")), seed, platform="reference")
    assert got.status == "pass" and got.measure == "invariants"
    got = run(toy("neither", oracle=""), seed, platform="reference")
    assert "oracle(...) or invariants(...)" in got.message


BAD = Case("bad_k", {"n": 4, "k": -1}, error="ValueError")


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("if k < 0:\n        raise ValueError('k: got -1')", None),
        ("if k < 0:\n        raise ValueError", "without a message"),
        ("if k < 0:\n        raise TypeError('k')", "wanted ValueError"),
        ("pass", "got no exception, wanted ValueError"),
        ("y = x + 1\n    if k < 0:\n        raise ValueError('late')", "allocates (aten.add"),
        ("y = x.view(-1)\n    if k < 0:\n        raise ValueError('a view is free')", None),
    ],
)
def test_bad_metadata_is_refused_before_any_allocation(toy, seed, check, told):
    init = (
        "from ascendkit import dispatch\n"
        "def refuse(x, k, *, out=None, platform=None):\n"
        f"    {check}\n    return dispatch.run(None, 'reference', (x, k)) if False else x * 1\n"
    )
    got = run(toy("refuse", __init__=init), seed, BAD)
    assert got.status == ("fail" if told else "pass"), got
    assert told is None or told in got.message
    assert got.judge == "raises ValueError"


def test_collective_cases_run_where_a_launcher_is(toy, seed):
    cases = (
        "from ascendkit import Case, Contract\nimport torch\n"
        "CONTRACT = Contract('calc_diff', limit=1e-12)\n"
        "def cases():\n    yield Case('sum', {}, ranks=3)\n"
        "def inputs(case, seed):\n"
        "    g = torch.Generator().manual_seed(seed)\n"
        "    return tuple((torch.randn(5, generator=g),) for _ in range(3))\n"
    )
    reference = (
        "def reference(ranks):\n"
        "    total = sum(x for x, in ranks)\n    return [total] * len(ranks)\n"
    )
    oracle = (
        "import numpy as np\ndef oracle(ranks):\n"
        "    return [np.sum([x for x, in ranks], axis=0)] * len(ranks)\n"
    )
    op = toy("all_sum", cases=cases, reference=reference, oracle=oracle,
             ascend=BODY)  # fmt: skip
    case = next(op.cases())
    assert run(op, seed, case, "reference").status == "pass"
    got = run(op, seed, case)
    assert got.status == "skip" and "no launcher for 3 ranks" in got.message
    op = toy("short", cases=cases.replace("range(3)", "range(2)"), reference=reference,
             oracle=oracle)  # fmt: skip
    assert "wanted one a rank" in run(op, seed, case, "reference").message


def test_keyword_only_parameters_of_a_case_reach_the_function(toy, seed):
    init = toy.files["__init__"].replace("out=None", "out=None, offset=0")
    init = init.replace("(x, k), {", "(x + offset, k), {")
    op = toy("keyed", __init__=init)
    assert run(op, seed).status == "pass"
    assert run(op, seed, Case("moved", {"n": 33, "k": 3, "offset": 1})).status == "fail"
    assert (
        run(op, seed, Case("no_such", {"n": 33, "k": 3, "out": 1, "platform": "x"})).status
        == "pass"
    )


def test_a_value_check_that_tracing_turns_off_still_counts(toy, seed):
    init = toy.files["__init__"].replace("not x.isfinite().all()", (
        "not torch._C._len_torch_dispatch_stack() and not x.isfinite().all()"
    ))  # fmt: skip
    op = toy("traced", __init__="import torch\n" + init)
    assert (
        run(op, seed, Case("nan", {"n": 4, "k": 1, "nan": True}, error="ValueError")).status
        == "pass"
    )


def test_a_file_that_imports_allocate_by_name_keeps_the_real_one(toy, seed):
    text = "def reference(x, k):\n    return allocate(x, k).copy_(x * k)\n"
    op = toy("named", reference="from toy.named import allocate\n" + text)
    assert run(op, seed, platform="reference").status == "pass"
    assert op.load("reference").allocate is op.load().allocate
