"""What the tables do not know never makes a step faster, and is never claimed."""

from __future__ import annotations

import json

import pytest

from ascendkit.budget.__main__ import main
from ascendkit.budget.call import Call
from ascendkit.budget.curves.facts import floor, known, vendor
from ascendkit.budget.curves.lookup import Stack, timing
from ascendkit.budget.plan import plan
from ascendkit.budget.roofline import check_formats, falls_to
from ascendkit.budget.step import budget
from ascendkit.budget.sweep import pareto
from ascendkit.formats import FORMATS, product_dtype
from ascendkit.hardware import Device, device, devices
from ascendkit.model import model
from ascendkit.model.config import with_formats

GEMM = dict(m=256, n=7168, k=2048)


def decode(on="h200", formats=None, key="v3", **config):
    m = with_formats(model(key), formats or {})
    base = dict(phase="decode", batch=16, seq=1, context=8192, ep=8)
    return budget(m, plan({**base, **config}, m), device(on) if isinstance(on, str) else on)


def test_a_product_without_a_rate_is_a_lower_bound():
    got = decode(formats={"linear": "fp32"}, phase="prefill", seq=1024, batch=1)
    line = next(ln for ln in got.lines if ln.label == "W_o")
    assert line.missing == {"cube"} and line.mark == "A"
    assert got.lower_bound and not got.time.claimed
    assert got.time.band[0] < got.seconds and got.time.band[1] is None


@pytest.mark.parametrize("leaf", ["peak_bf16_tflops", "peak_fp8_tflops", "vector_fp32_tflops"])
def test_forgetting_a_rate_never_keeps_a_claim(leaf):
    on = device("h200")
    less = Device("h200", {k: v for k, v in on.leaves.items() if k != leaf})
    before, after = decode(), decode(less)
    assert before.time.claimed and not before.lower_bound
    if leaf == "peak_fp8_tflops":
        # FP8 codes are BF16 values: slower, known, and transferred.
        assert not after.lower_bound and after.time.shares["T"] > 0.2
    elif leaf == "peak_bf16_tflops":
        assert after.lower_bound and not after.time.claimed
    else:
        # Kernels measured on this device contain their vector work; transferred ones do not.
        assert {ln.label for ln in after.lines if ln.missing} == {
            ln.label for ln in before.lines if "T" in ln.marks and ln.flops.get("vector.fp32")
        }


def test_an_assumed_time_still_launches():
    call = Call("", "gemm_mad.gemm", dict(m=1, n=8, k=8))
    for mode in ("graph", "queued", "eager"):
        most = max(
            floor(k, mode)[0] for k in known() if vendor(k) == "ascend" and floor(k, mode)[1] != "T"
        )
        seconds, mark, source = floor("ascend_960", mode)
        assert (seconds, mark) == (most, "A") and "largest floor known of ascend" in source
        got = timing(call, device("ascend_960"), Stack("decode", mode))
        assert got.seconds > most and got.mark == "A" and "largest floor" in got.how


def test_a_package_is_not_faster_than_twice_its_die():
    die, package = (
        decode(on, phase="prefill", batch=1, seq=2048, context=2048)
        for on in ("ascend_910c_die", "ascend_910c")
    )
    assert package.seconds > die.seconds / 2.2  # the waves over its cores are unknown


def test_the_command_marks_bounds(capsys):
    argv = ["phase=decode", "hardware=ascend_960"]
    main(argv)
    text = capsys.readouterr().out
    assert "step time" in text and ">= " in text and "<= " in text and "to unknown" in text
    main([*argv, "output=json"])
    (got,) = json.loads(capsys.readouterr().out)["devices"]
    assert got["p90_s"] is None and got["lower_bound"] and not got["claimed"]
    main([*argv, "action=explain", "op=attention"])
    text = capsys.readouterr().out
    assert "<- longest of what is known" in text and "binds" not in text and "time >=" in text
    assert main([*argv, "output=html"]) == 0
    assert "&gt;= " in capsys.readouterr().out


def test_a_bound_is_not_on_the_front():
    def row(step, **more):
        return dict(step_s=step, tokens_per_s_rank=1 / step, fits=True, **more)

    assert pareto([row(1, lower_bound=True), row(2, lower_bound=False)]) == [
        row(2, lower_bound=False)
    ]
    assert pareto([row(1, lower_bound=True)])


@pytest.mark.parametrize("key", devices())
def test_hif8_runs_where_its_rate_is_known(key):
    on = device(key)
    if on.get("peak_hif8_tflops") is None:
        with pytest.raises(ValueError, match="format: got 'hif8', wanted a format with a known"):
            check_formats(on, ["hif8"])
    else:
        check_formats(on, ["hif8"])


def test_a_refusal_names_what_the_device_has():
    with pytest.raises(ValueError, match="fp8_1x128") as e:
        decode("h200", {"expert": "hif8"})
    assert "mxfp4" not in str(e.value) and "nearest legal: fp8" in str(e.value)


def test_a_wider_unit_is_a_transfer_and_said():
    call = Call("", "gemm_mad.gemm", {**GEMM, "a": "mxfp4", "b": "mxfp4"})
    own = Call("", "gemm_mad.gemm", {**GEMM, "a": "fp8", "b": "fp8"})
    assert timing(own, device("h200"), Stack("decode")).mark == "P"
    got = timing(call, device("h200"), Stack("decode"))
    assert got.mark == "T" and "mxfp4 run as fp8" in got.how
    assert "h200 has no mxfp4 units; run as fp8" in decode(key="v4_flash").warnings
    # NVIDIA's table says fp4 for the same class.
    assert falls_to(device("b200"), "mxfp4") == ""


@pytest.mark.parametrize("a", FORMATS)
@pytest.mark.parametrize("b", FORMATS)
def test_a_product_runs_where_both_operands_are_exact(a, b):
    got = product_dtype(a, b)
    assert got == product_dtype(b, a)
    families = {FORMATS[a].family, FORMATS[b].family}
    if len(families & {"int8", "fp8", "hif8"}) == 2:
        assert got == "bf16"
    if families == {"hif8"}:
        assert got == "hif8"
