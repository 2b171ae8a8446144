"""Exit codes are the same in every command; what ``fits`` says of a source is a lower bound."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("tilelang")

from ascendkit.emulator.__main__ import main
from ascendkit.emulator.findings import examples
from ascendkit.emulator.findings.codes import codes
from ascendkit.emulator.lowered import LoweredKernel
from tests.emulator.corpus import vector

pytestmark = pytest.mark.emu
LAUNCH = ("--grid", "1", "--arg", "x=float32[3,128]=ones", "--arg", "y=float32[3,128]=zeros")
COPY_IN = "asc_copy_gm2ub_align("


@pytest.fixture(scope="module")
def texts():
    """Sources by name: right, with a barrier too many, racing, out of bounds, not supported,
    not for this chip, and too large."""
    good = LoweredKernel(vector.single_buffer(3)).kernel_source
    rows = good.splitlines()
    at = next(i for i, row in enumerate(rows) if row.startswith("    main_kernel_simd_vf_0("))
    wait = next(row for row in rows if "asc_sync_wait(PIPE_MTE2, PIPE_V" in row)
    copy = next(row for row in rows if COPY_IN in row)
    return {
        "good": good,
        "extra": "\n".join([*rows[:at], "    asc_sync();", *rows[at:]]),
        "racy": good.replace(wait, ""),
        "outside": good.replace(copy, copy.replace("1, 512, 0", "1, 4096, 0")),
        "unsupported": good.replace(copy, copy + " asc_set_gm2ub_loop_size(2, 1);"),
        "elsewhere": examples.text(codes()["AK-SOURCE-001"]),
        "large": good.replace(copy, copy.replace("[0]", "[65536]")),
        "usage": None,
    }


@pytest.mark.parametrize(
    "command, name, code",
    [
        ("run", "good", 0),
        ("run", "racy", 0),  # judges are off
        ("run", "outside", 1),
        ("run", "unsupported", 2),
        ("run", "elsewhere", 1),
        ("run", "usage", 2),
        ("check", "good", 0),
        ("check", "racy", 1),
        ("check", "outside", 1),
        ("check", "unsupported", 2),
        ("check", "elsewhere", 1),
        ("check", "usage", 2),
        ("advise", "good", 0),
        ("advise", "extra", 1),
        ("advise", "racy", 2),  # cure that first
        ("advise", "unsupported", 2),
        ("advise", "usage", 2),
        ("lint", "good", 0),
        ("lint", "racy", 1),
        ("lint", "elsewhere", 1),
        ("lint", "usage", 2),
        ("fits", "good", 0),
        ("fits", "large", 1),
        ("fits", "usage", 2),
    ],
)
def test_exit_codes(texts, tmp_path, capsys, command, name, code):
    path = tmp_path / "kernel.asc"
    if texts[name] is not None:
        path.write_text(texts[name])
    launch = LAUNCH if command in ("run", "check", "advise") else ()
    assert main([command, str(path), *launch]) == code
    said = capsys.readouterr()
    assert said.out or said.err


def test_help_has_the_table(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "exit codes of run, check, lint, fits and advise" in capsys.readouterr().out


def test_usage_errors_of_the_parser_are_two():
    for argv in (["run"], ["fits"], ["run", "x.asc", "--grid", "1", "stray"], ["nothing"]):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 2


def test_what_a_source_says_of_capacity_is_a_lower_bound(texts, tmp_path, capsys):
    path = tmp_path / "kernel.asc"
    copy = next(row for row in texts["good"].splitlines() if COPY_IN in row)
    second = copy.replace("[0]", "[64]")
    path.write_text(texts["good"].replace(copy, copy + "\n" + second))
    assert main(["fits", str(path)]) == 0
    text = capsys.readouterr().out
    assert "nothing seen that does not fit a 950" in text and "lower bound:" in text
    assert "share 256 bytes: one buffer, or two at different times" in text
    assert main(["fits", str(path), "output=json"]) == 0
    (fit,) = json.loads(capsys.readouterr().out)
    assert fit["bound"].startswith("lower bound") and len(fit["overlaps"]) == 1
    assert fit["memories"][0]["placed"] == 64 * 4 + 512


def test_a_source_without_constant_copies_cannot_be_judged(texts, tmp_path, capsys):
    path = tmp_path / "kernel.asc"
    rows = [row for row in texts["good"].splitlines() if "asc_copy_" not in row]
    path.write_text("\n".join(rows))
    assert main(["fits", str(path)]) == 2
    assert "cannot be judged" in capsys.readouterr().out


def test_a_function_has_its_whole_need(capsys):
    argv = ["fits", "ascendkit.emulator.samples:add", "n=512", "output=json"]
    assert main(argv) == 0
    (fit,) = json.loads(capsys.readouterr().out)
    assert fit["bound"] == "" and fit["verdict"] == "fits a 950"
