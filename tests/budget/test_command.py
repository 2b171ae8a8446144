"""The command as a user meets it: output, exit codes, one-line errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ascendkit.budget.__main__ import main
from ascendkit.cost import LEVELS
from ascendkit.hardware import devices
from ascendkit.model import models


def run(*argv):
    return subprocess.run(
        [sys.executable, "-m", "ascendkit.budget", *argv], capture_output=True, text=True
    )


def report(capsys, *argv):
    assert main([*argv, "output=json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_default_run_is_the_published_training_step(capsys):
    got = report(capsys)
    assert (got["model"], got["plan"]["phase"], got["plan"]["ranks"]) == ("v3", "train", 2048)
    (h800,) = got["devices"]
    assert h800["tokens"] == 15360 * 4096
    assert h800["p10_s"] < h800["step_s"] < h800["p90_s"]
    assert sum(h800["marks"].values()) == pytest.approx(1)
    assert sum(p["seconds"] for p in h800["parts"]) == pytest.approx(h800["step_s"])


def test_a_bound_stays_below_the_published_step(capsys):
    (h800,) = report(capsys, "time=peak")["devices"]
    assert 5 < h800["step_s"] < 19.926


@pytest.mark.parametrize("phase", ["train", "prefill", "decode"])
@pytest.mark.parametrize("key", models())
@pytest.mark.parametrize("time", ["peak", "curves"])
def test_every_model_on_every_device(key, phase, time, capsys):
    small = ["ep=4", "batch=2", "context=512", f"time={time}"]
    if phase != "decode":
        small.append("seq=512")
    if phase == "train":
        small += ["ranks=8", "pp=2", "global_batch=8"]
    got = report(capsys, f"model={key}", f"phase={phase}", f"hardware=[{','.join(devices())}]",
                 *small)  # fmt: skip
    assert [d["device"] for d in got["devices"]] == list(devices())
    for d in got["devices"]:
        assert sum(line["share"] for line in d["operators"]) == pytest.approx(1)
        assert sum(line["seconds"] for line in d["operators"]) == pytest.approx(d["serial_s"])
        if time == "peak":
            assert d["serial_s"] == d["step_s"]
        for line in d["operators"]:
            assert set(line["bytes"]) == set(LEVELS)
            assert line["bound"] in {*line["resource_s"], "launch"}
            assert line["seconds"] > 0


def test_side_by_side_table(capsys):
    assert main(["model=v4_1_flash", "phase=decode", "hardware=[950dt,h200,b200]"]) == 0
    text = capsys.readouterr().out
    for word in ("ascend_950dt", "h200", "b200", "expert GEMMs", "KV per token of context", "890"):
        assert word in text


def test_unknown_rate_prints_unknown(capsys):
    assert main(["hardware=ascend_960", "time=peak"]) == 0
    text = capsys.readouterr().out
    assert "no rate for" in text
    assert ">=" in text


def test_explain_puts_the_numbers_in(capsys):
    assert main(["action=explain", "op=dispatch", "model=v4_1_flash", "phase=decode"]) == 0
    text = capsys.readouterr().out
    assert "num_tokens*up*hidden*w*skew = 64*" in text
    assert "<- binds" in text


def test_explain_goes_down_to_rows_and_sources(capsys):
    main(["action=explain", "op=q_b", "model=v4_flash", "phase=decode", "hardware=h200"])
    text = capsys.readouterr().out
    for words in ("mark P", "nearest rows: h200_gemm", "aiconfigurator", "latency", "of peak"):
        assert words in text


def test_explain_says_what_runs_as_what(capsys):
    main(["action=explain", "op=expert GEMMs", "model=v4_flash", "phase=decode", "hardware=h200"])
    assert "w4a8 products run as fp8 on this device" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["model=v33"], "nearest: v3"),
        (["hardware=[h200,h2000]"], "nearest: h200"),
        (["modle=v3"], "nearest: model"),
        (["batch=-1"], "batch: got -1"),
        (["action=explain"], "op"),
        (["action=explain", "op=dispach"], "nearest: dispatch"),
        (["hardware=[h200"], "hardware"),
        (["phase=decoding"], "decode"),
        (["acceptance=2"], "acceptance"),
        (["=3"], "key=value"),
        (["time=curve"], "nearest: curves"),
        (["what_if.hbm=0"], "what_if.hbm"),
        (["what_if.hmb=2"], "nearest: what_if.hbm"),
        (["routing=zipf:x", "phase=decode"], "zipf"),
        (["routing=[1,2,3]", "phase=decode"], "one an expert"),
        (["format.linear=fp9"], "format"),
        (["action=diff"], "against"),
        (["action=diff", "against=[hardware=h2000]"], "nearest: h200"),
        (["action=sweep"], "over"),
        (["action=sweep", "over=[batsh=1|2]"], "nearest: batch"),
        (["action=sweep", "over=[batch=1|2]", "output=html"], "output"),
        (["output=html", "file=/nowhere/x.html"], "cannot write"),
        (["schedule=dualpipe", "global_batch=1024"], "dualpipe"),
        (["vp=2"], "vp"),
        (["interleave=3", "phase=decode"], "interleave"),
        (["cp=3", "phase=prefill"], "cp"),
    ],
)
def test_usage_errors_name_what_is_wrong(argv, words, capsys):
    with pytest.raises((ValueError, TypeError)) as e:
        main(argv)
    assert words in str(e.value)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("argv", [["model=v33"], ["action=sweep", "over=[batsh=1|2]"]])
def test_usage_errors_are_one_line_and_exit_2(argv):
    got = run(*argv)
    assert got.returncode == 2
    assert got.stdout == ""
    assert len(got.stderr.strip().splitlines()) == 1


def test_same_inputs_same_bytes():
    argv = ["model=v4_pro", "phase=decode", "output=json", "hardware=[h200,950pr]"]
    assert run(*argv).stdout == run(*argv).stdout
