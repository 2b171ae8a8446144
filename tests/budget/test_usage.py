"""No key is ignored in silence, and every refusal names a value that is legal."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from ascendkit.budget.__main__ import main
from ascendkit.cost import Cost
from ascendkit.registry import op

DECODE = ["phase=decode", "batch=4", "context=2048", "ep=8"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["file=x.txt"], "file: got 'x.txt', wanted none unless output=json|html|trace"),
        (["action=explain", "op=q_b", "file=x"], "file: got"),
        (["action=goldens", "file=x"], "file: got"),
        (["action=diff", "against=[batch=2]", "file=x"], "file: got"),
        (["action=diff", "hardware=[h200,b200]", "against=[mtp=1]"], "one device a side"),
        (["action=diff", "against=['hardware=[h200,b200]']"], "one device a side"),
        (["action=diff", "against=[action=sweep]"], "against: got 'action'"),
        (["action=diff", "against=['over=[batch=1]']"], "against: got 'over'"),
        (["op=q_b"], "op: got 'q_b', wanted none unless action=explain"),
        (["over=[batch=1|2]"], "wanted none unless action=sweep"),
        (["against=[batch=2]"], "wanted none unless action=diff"),
        (["action=sweep", "over=[ep=8]", "op=q_b"], "wanted none unless action=explain"),
        (["action=goldens", "model=v3"], "keys: got 'model'"),
        (["action=validate", "what_if.hbm=2"], "keys: got 'what_if.hbm'"),
        (["mtp=1", "acceptance=0.5"], "wanted none unless phase=decode"),
        ([*DECODE, "mtp=1", "acceptance=true"], "acceptance: got True"),
        ([*DECODE, "acceptance=.nan"], "acceptance: got nan"),
        ([*DECODE, "routing=zipf:"], "routing: got 'zipf:', wanted balanced, zipf:<0 to 4>"),
        ([*DECODE, "routing=[.nan]"], "routing: got [nan], wanted finite weights"),
        ([*DECODE, "routing=[1.0]"], "one an expert"),
        (["phase=[train,decode]"], "phase: got '[train,decode]', wanted one value"),
        (["parallel=[train]"], "parallel: got"),
        (["action=diff", "against=['phase=[train]']"], "phase: got"),
        (["mtp=-1"], "mtp: got -1, wanted at least 0; nearest legal: 0"),
        (["schedule=dualpipe", "pp=15", "ranks=1920"], "pp: got 15, wanted an even number"),
        (["schedule=dualpipe", "pp=1"], "pp: got 1"),
        (["schedule=interleaved", "vp=100"], "wanted at most 3 chunks a rank; nearest legal: 3"),
        (["schedule=interleaved"], "vp: got 1, wanted at least 2"),
        ([*DECODE, "schedule=dualpipe"], "schedule: got 'dualpipe', wanted none in decode"),
        ([*DECODE, "recompute=full"], "recompute: got"),
        ([*DECODE, "zero=0"], "zero: got"),
        ([*DECODE, "global_batch=64"], "global_batch: got 64"),
        ([*DECODE, "seq=512"], "seq: got 512"),
        ([*DECODE, f"batch={10**26}"], "nearest legal: 1073741824"),
        ([*DECODE, "time=peak", "launch=eager"], "launch: got 'eager'"),
        (["measured=[/proc/self/mem]"], "measured: cannot read"),
    ],
)
def test_what_would_be_ignored_is_refused(argv, words, capsys):
    with pytest.raises((ValueError, TypeError)) as e:
        main(argv)
    assert words in str(e.value)
    assert "/configs/" not in str(e.value)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "argv",
    [
        ["schedule=dualpipe", "pp=15", "ranks=13440", "global_batch=26880"],
        ["schedule=interleaved", "vp=100", "global_batch=16384"],
        ["schedule=interleaved", "vp=2", "global_batch=15360"],
        ["ranks=2000"],
        ["mtp=-1"],
        [*DECODE, "batch=0"],
        [*DECODE, "routing=zipf:"],
    ],
)
def test_the_nearest_legal_value_is_legal(argv, capsys):
    with pytest.raises(ValueError) as e:
        main(argv)
    name = str(e.value).partition(":")[0].replace("micro-batches", "global_batch")
    near = re.search(r"nearest legal: (\S+)", str(e.value)).group(1)
    near = str(int(near) * 128) if name == "global_batch" else near
    kept = [a for a in argv if not a.startswith(f"{name}=")]
    assert main([*kept, f"{name}=[{near}]" if name == "routing" else f"{name}={near}"]) == 0


def test_exit_codes_of_usage_errors_are_2():
    for argv in (["measured=[/proc/self/mem]"], ["phase=[train,decode]"]):
        command = [sys.executable, "-m", "ascendkit.budget", *argv]
        got = subprocess.run(command, capture_output=True, text=True)
        assert (got.returncode, len(got.stderr.splitlines()), got.stdout) == (2, 1, "")


@pytest.mark.parametrize("action", [["action=explain", "op=q_b"], ["action=goldens"]])
def test_a_file_is_written_where_it_is_taken(action, tmp_path, capsys):
    more = DECODE if "action=goldens" not in action else []
    assert main([*action, *more, "output=json", f"file={tmp_path / 'a'}"]) == 0
    assert capsys.readouterr().out == "" and json.loads((tmp_path / "a").read_text())


@pytest.mark.parametrize("key", ["tiny", "nano"])
@pytest.mark.parametrize("phase", ["train", "prefill", "decode"])
def test_small_models_have_layouts_of_their_own(key, phase, capsys):
    assert main([f"model={key}", f"phase={phase}", "output=json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["ep"] == 4
    assert main([f"model={key}", f"phase={phase}", "ep=8", "output=json", "ranks=16"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["ep"] == 8


def test_a_sweep_over_models_lays_each_out(capsys):
    assert main(["phase=decode", "action=sweep", "over=[model=v3|tiny|nano]", "output=json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r.get("ranks") for r in rows] == [64, 4, 4]


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gemm_mad.gemm", dict(m=4, n=4, k=4)),
        ("tilekernels.swiglu", dict(num_tokens=4, hidden=4)),
        ("ep_comm.all_reduce", dict(num_values=4, ranks=4, scaleup_ranks=8)),
    ],
)
def test_a_cost_of_no_size_names_op_term_and_parameter(name, params, bad):
    first = next(iter(params))
    with pytest.raises((ValueError, OverflowError)) as e:
        op(name).cost(**{**params, first: bad})
    assert name in str(e.value) or "convert" in str(e.value) or "integer" in str(e.value)


def test_two_negative_sizes_do_not_make_a_positive_cost():
    with pytest.raises(ValueError, match=r"gemm_mad\.gemm m: got -1, wanted .*'multiply-add'"):
        op("gemm_mad.gemm").cost(m=-1, n=-1, k=4)


def test_a_term_below_zero_or_without_end_is_refused():
    with pytest.raises(ValueError, match=r"cost, 'x': a-b: got -1\.0"):
        Cost(dict(a=1, b=2)).read("x", "a-b")
    with pytest.raises(ValueError, match="cost, 'x': 1/a: "):
        Cost(dict(a=0)).read("x", "1/a")
