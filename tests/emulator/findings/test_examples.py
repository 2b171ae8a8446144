"""Every example of the list of codes really gives its code."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("tilelang")

import torch

from ascendkit.emulator.findings import check, examples
from ascendkit.emulator.findings.codes import codes
from ascendkit.emulator.findings.cures import cured, cures
from ascendkit.emulator.findings.lint import lint
from ascendkit.emulator.lowered import ascend_target

pytestmark = pytest.mark.emu
ALL = list(codes().values())


def got(result):
    return {f.code for f in result.findings}


@pytest.mark.parametrize("kind", ["vector", "mixed"])
def test_examples_that_run(kind):
    wrong = {c.code: got(r) for c, r in examples.run(ALL, kind) if c.code not in got(r)}
    assert not wrong


@pytest.mark.parametrize("code", examples.of_kind(ALL, "source"), ids=lambda c: c.code)
def test_examples_that_are_refused(code):
    x = torch.zeros(examples.FLOATS)
    assert code.code in got(check(examples.text(code), x, x.clone(), 0, grid=1))


def test_an_example_alone_gives_the_same_as_among_others():
    code = codes()["AK-ALIGN-001"]
    x = torch.zeros(examples.FLOATS)
    result = check(examples.text(code), x, x.clone(), 0, grid=1)
    (finding,) = [f for f in result.findings if f.severity == "error"]
    assert finding.code == code.code
    assert finding.here.text.startswith("asc_copy_gm2ub_align(")


@pytest.mark.parametrize("code", examples.of_kind(ALL, "lint"), ids=lambda c: c.code)
def test_examples_for_lint(code):
    found = lint(examples.text(code))
    assert code.code in {f.code for f in found}
    assert all(f.here.line for f in found)


@pytest.mark.parametrize("code", examples.of_kind(ALL, "python"), ids=lambda c: c.code)
def test_examples_in_python(code, tmp_path):
    make = examples.module(code, tmp_path).make
    with ascend_target():
        found = lint(make.get_tir(), make.pass_configs)
    assert code.code in {f.code for f in found}


CURED = [after for code in ALL if (after := cured(code)) is not None]


@pytest.mark.parametrize("kind", ["vector", "mixed"])
def test_cured_examples_that_run(kind):
    left = {c.code: got(r) for c, r in examples.run(CURED, kind) if c.code in got(r)}
    assert not left


@pytest.mark.parametrize("code", examples.of_kind(CURED, "source"), ids=lambda c: c.code)
def test_cured_examples_that_were_refused(code):
    x = torch.zeros(examples.FLOATS)
    result = check(examples.text(code), x, x.clone(), 0, grid=1)
    assert result.run is not None and code.code not in got(result)


@pytest.mark.parametrize("code", examples.of_kind(CURED, "lint"), ids=lambda c: c.code)
def test_cured_examples_for_lint(code):
    assert code.code not in {f.code for f in lint(examples.text(code))}


@pytest.mark.parametrize("code", examples.of_kind(CURED, "python"), ids=lambda c: c.code)
def test_cured_examples_in_python(code, tmp_path):
    make = examples.module(code, tmp_path).make
    with ascend_target():
        assert code.code not in {f.code for f in lint(make.get_tir(), make.pass_configs)}


NO_CURE = {
    "AK-CORE-003": "the kernel has to be compiled for both kinds of cores",
    "AK-SQUEEZE-001": "a vector function with a squeezing store comes before it",
    "AK-UNSUPPORTED-003": "the conversion moves to a vector core",
    "AK-LINT-006": "a list to read",
}


def test_every_example_has_a_cure_that_is_run():
    without = {c.code for c in ALL if c.example.kind != "none"} - {c.code for c in CURED}
    assert without == set(NO_CURE)
    assert set(cures()) <= set(codes())


def test_every_code_has_an_example_of_at_most_sixteen_lines_or_a_reason():
    for code in ALL:
        assert len(code.example.body.splitlines()) <= 16, code.code
        assert (code.example.kind == "none") == bool(code.example.why), code.code
