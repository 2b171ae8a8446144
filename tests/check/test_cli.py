"""The edge of every command: arguments over a config."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendkit import cli, data

CONFIG = """
name: plain
title: text
count: 4
rate: 1.5
on: false
items: [1, 2]
any: null
nested: {deep: {x: 1}}
help:
  summary: A toy command.
  keys: {count: how many}
  choices: {name: [plain, fancy], items: [1, 2, 3]}
  examples: [python -m toy count=2]
"""
GROUPED = """
defaults: [size: small, _self_]
tokens: 8
twice: ${tokens}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "toy.yaml").write_text(CONFIG.replace("on:", "'on':"))
    (tmp_path / "grouped.yaml").write_text(GROUPED)
    (tmp_path / "size").mkdir()
    (tmp_path / "size" / "small.yaml").write_text("rows: 1\n")
    (tmp_path / "size" / "large.yaml").write_text("rows: ${tokens}\ncolumns: 9\n")
    monkeypatch.setattr(data, "configs", lambda: tmp_path)
    return tmp_path


def test_arguments_take_the_type_of_the_default(folder):
    got = cli.compose(
        "toy", ["name=fancy", "count=-7", "rate=2e3", "on=True", "items=[3,1]", "nested.deep.x=5"]
    )
    assert got == {
        "name": "fancy", "title": "text", "count": -7, "rate": 2000.0, "on": True, "items": [3, 1],
        "any": None, "nested": {"deep": {"x": 5}},
    }  # fmt: skip
    assert cli.compose("toy", ["items=2"])["items"] == [2]
    assert cli.compose("toy", ["count=1", "count=2"])["count"] == 2
    assert cli.compose("toy", ["title=*"])["title"] == "*"
    assert cli.compose("toy", ["title=2026-01-01"])["title"] == "2026-01-01"
    assert cli.compose("toy", ["title='a: b'"])["title"] == "a: b"
    assert [cli.compose("toy", [f"any={v}"])["any"] for v in ("3", "x", "1.5", "null", "true")] == [
        3, "x", 1.5, None, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("cuont=1", "nearest: count"),
        ("nested.deep.y=1", r"nearest: nested\.deep\.x"),
        ("nested=1", "nested"),
        ("count=x", "wanted an integer"),
        ("count=1.5", "wanted an integer"),
        ("count=0x10", "wanted an integer"),
        ("rate=nan", "wanted a finite number"),
        ("rate=1e999", "wanted a finite number"),
        ("on=maybe", "wanted true or false"),
        ("name=fanci", "nearest: fancy"),
        ("items=[1,4]", "items: got 4"),
        ("name=[plain]", "wanted one value"),
        ("title='a", "wanted a value"),
        ("any={a: 1}", "wanted one value"),
        ("any=[1, 2", "wanted a value or a"),
        ("any=!!python/object/apply:os.system [ls]", "wanted a value"),
        ("count", "wanted key=value"),
        ("count=", "wanted key=value"),
        ("=4", "wanted key=value"),
        ("--count=4", "wanted key=value"),
        ("+new=4", "not added or deleted"),
        ("~count=4", "not added or deleted"),
        ("help=1", "wanted one of any, count"),
        ("defaults=1", "wanted one of"),
        ("\x00=1", "wanted one of"),
    ],
)
def test_bad_arguments_say_what_is_wanted(folder, argument, told):
    with pytest.raises(ValueError, match=told):
        cli.compose("toy", [argument])


@given(st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_a_value_or_a_value_error(texts):
    for key in ("seed", "op", "level"):
        try:
            got = cli.compose("check", [f"{key}={t}" for t in texts])
        except ValueError as e:
            assert str(e)
        else:
            assert got["level"] in ("smoke", "core", "full")


def test_groups_compose_and_interpolate(folder, capsys):
    pytest.importorskip("hydra", reason="pip install hydra-core")
    got = cli.compose("grouped", ["size=large", "tokens=3", "size.columns=2"])
    assert got == {"size": {"rows": 3, "columns": 2}, "tokens": 3, "twice": 3}
    assert cli.compose("grouped", [])["size"] == {"rows": 1}
    with pytest.raises(ValueError, match="nearest: large"):
        cli.compose("grouped", ["size=lagre"])
    with pytest.raises(ValueError, match=r"nearest: size\.rows"):
        cli.compose("grouped", ["size.colums=1"])
    assert cli.compose("grouped", ["twice=5"])["twice"] == 5
    with pytest.raises(SystemExit):
        cli.compose("grouped", ["--help"])
    assert "one of large, small" in capsys.readouterr().out


def test_broken_configs_are_one_line(folder):
    pytest.importorskip("hydra", reason="pip install hydra-core")
    (folder / "bad.yaml").write_text("a: [1\nb: 2\n")
    with pytest.raises(ValueError, match=r"bad\.yaml:2:"):
        cli.compose("bad", [])
    (folder / "list.yaml").write_text("- 1\n")
    with pytest.raises(ValueError, match="wanted a mapping"):
        cli.compose("list", [])
    (folder / "loop.yaml").write_text("defaults: [_self_]\na: ${b}\nb: ${a}\n")
    with pytest.raises(ValueError, match="ecursi"):
        cli.compose("loop", [])
    (folder / "gone.yaml").write_text("defaults: [size: medium, _self_]\n")
    with pytest.raises(ValueError, match="medium"):
        cli.compose("gone", [])
    with pytest.raises(ValueError, match="nearest: toy"):
        cli.compose("toi", [])


def test_help_shows_defaults_choices_and_examples(folder, capsys):
    for flag in ("--help", "-h"):
        with pytest.raises(SystemExit) as stop:
            cli.compose("toy", ["count=x", flag])
        assert stop.value.code == 0
    out = capsys.readouterr().out
    for text in ("A toy command.", "count=4", "how many", "plain|fancy", "nested.deep.x=1",
                 "items=[1,2]", "any=null", "python -m toy count=2"):  # fmt: skip
        assert text in out


def test_errors_are_one_line_with_code_two(capsys, monkeypatch):
    def main(argv):
        raise ValueError("first\n  second")

    with pytest.raises(SystemExit) as stop:
        cli.run(main)
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: first second\n"
    with pytest.raises(SystemExit) as stop:
        cli.run(lambda argv: 1)
    assert stop.value.code == 1

    def interrupted(argv):
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as stop:
        cli.run(interrupted)
    assert stop.value.code == 130


def test_plain_configs_need_no_hydra_and_grouped_ones_say_so(tmp_path):
    root = Path(__file__).resolve().parents[2]
    code = (
        "import sys\nsys.modules['hydra'] = sys.modules['omegaconf'] = None\n"
        "from ascendkit import cli, data\n"
        "print(cli.compose('check', ['level=core', 'seed=3'])['level'])\n"
        f"data.configs = lambda: __import__('pathlib').Path({str(tmp_path)!r})\n"
        "cli.compose('grouped', [])\n"
    )
    (tmp_path / "grouped.yaml").write_text(GROUPED)
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout == "core\n"
    assert "pip install hydra-core" in done.stderr.splitlines()[-1]


def test_text_the_terminal_cannot_show_is_escaped():
    root = Path(__file__).resolve().parents[2]
    code = "from ascendkit.cli import run\nrun(lambda argv: print('\\u00e9\\u4e2d') or 0)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "\\xe9\\u4e2d\n")


@pytest.mark.parametrize(
    ("redirect", "code", "told"),
    [(">&-", 0, ""), ("2>&-", 0, ""), ("> /dev/full", 1, "error: [Errno 28]")],
)
def test_outputs_that_cannot_be_written(redirect, code, told):
    root = Path(__file__).resolve().parents[2]
    command = f"{sys.executable} -m ascendkit.check --help {redirect}"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, env=env)
    assert done.returncode == code and done.stderr.startswith(told)
    assert done.stderr.count("\n") == bool(told)


@pytest.mark.parametrize("module", ["ascendkit.budget", "ascendkit.check", "ascendkit"])
@pytest.mark.parametrize("package", ["yaml", "rich"])
def test_a_checkout_without_base_packages_says_what_to_install(module, package):
    code = (
        f"import runpy, sys; sys.modules[{package!r}] = None; sys.argv = ['x', *sys.argv[1:]]; "
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    argv = ["status"] if module == "ascendkit" else []
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert "pip install" in done.stderr


def test_brackets_are_text(capsys):
    cli.console().print("pip install -e '.[mpi]'")
    assert "'.[mpi]'" in capsys.readouterr().out
