"""Bad input: one ValueError or TypeError that names what was got, what is wanted, what is near."""

from __future__ import annotations

import pytest

from ascendkit.budget.plan import plan
from ascendkit.hardware import device
from ascendkit.model import model

DECODE = dict(phase="decode", batch=8, seq=1, context=4096, ep=8)


@pytest.mark.parametrize(
    ("key", "change", "words"),
    [
        ("v3", dict(ep=7), "ep: got 7, wanted a divisor of 256 experts; nearest legal: 8"),
        ("v3", dict(tp=3), "tp: got 3, wanted a divisor of 128 heads; nearest legal: 2"),
        ("v4_flash", dict(tp=16), "tp: got 16, wanted a divisor of 8 output groups"),
        ("v3", dict(context=200000), "nearest legal: 163840"),
        ("v3", dict(batch=0), "batch: got 0, wanted a positive size; nearest legal: 1"),
        ("v3", dict(batch=-3), "batch: got -3"),
        ("v3", dict(ep=-1), "ep: got -1"),
        ("v3", dict(pp=62, ranks=496), "pp: got 62, wanted at most the 61 layers"),
        ("v3", dict(ranks=12), "ranks: got 12, wanted ranks / pp a multiple of ep = 8"),
        ("v3", dict(mtp=9), "mtp: got 9, wanted at most 8"),
        ("v4_1_flash", dict(mtp=1), "mtp: got 1, wanted 0 for v4_1_flash"),
        ("v3", dict(phase="decod"), "nearest: decode"),
        ("v3", dict(zero=2), "zero: got 2, wanted 0 or 1"),
        ("v3", dict(recompute="selectiv"), "nearest: selective"),
        ("v3", dict(phase="prefill", seq=4096, context=100), "nearest legal: 4096"),
        (
            "v3",
            dict(phase="train", seq=4096, global_batch=9),
            "global_batch: got 9, wanted a multiple of dp * batch = 64; nearest legal: 64",
        ),
    ],
)
def test_bad_plan(key, change, words):
    with pytest.raises(ValueError, match="got") as e:
        plan({**DECODE, **change}, model(key))
    assert words in str(e.value)


def test_bad_type():
    with pytest.raises(TypeError, match="batch: got float, wanted an integer"):
        plan({**DECODE, "batch": 1.5}, model("v3"))


@pytest.mark.parametrize("legal_near", [1, 2, 4, 8, 256])
def test_named_legal_values_are_legal(legal_near):
    assert plan({**DECODE, "ep": legal_near, "ranks": 0}, model("v3")).ep == legal_near


@pytest.mark.parametrize(
    ("name", "key"),
    [("DeepSeek-V4.1-Flash", "v4_1_flash"), ("V3.2", "v3_2"), ("v4-pro", "v4_pro")],
)
def test_model_aliases(name, key):
    assert model(name).key == key


def test_unknown_model_names_the_nearest():
    with pytest.raises(ValueError, match="nearest: v4_flash"):
        model("v4_flsh")


def test_model_without_a_configuration_is_not_guessed():
    with pytest.raises(ValueError, match="unknown here"):
        model("v4_1_pro")


@pytest.mark.parametrize(("name", "key"), [("950DT", "ascend_950dt"), ("A3", "ascend_910c_die")])
def test_device_aliases(name, key):
    assert device(name).key == key


def test_unknown_device_names_the_nearest():
    with pytest.raises(ValueError, match="nearest: h200"):
        device("h2000")


def test_unknown_rate_is_none():
    assert device("ascend_910b").flops_per_s("cube", "fp8") is None
    assert device("ascend_950pr").link_bytes_per_s("scaleout") is None
