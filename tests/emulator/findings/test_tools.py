"""source, advise, replay and mutate on a command line, with files and with functions."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("tilelang")

from ascendkit.emulator.__main__ import main

pytestmark = pytest.mark.emu
FUNCTION = ("ascendkit.emulator.samples:add", "n=2048")
ARGS = [
    x for n in "abc" for x in ("--arg", f"{n}=float32[2048]={'zeros' if n == 'c' else 'randn'}")
]
FILE = ("--grid", "2", *ARGS)


@pytest.fixture
def files(tmp_path, capsys):
    """The text of a function, without one wait, and with a barrier too many."""
    assert main(["source", *FUNCTION]) == 0
    text = capsys.readouterr().out
    rows = text.splitlines()
    at = next(i for i, row in enumerate(rows) if row.startswith("  ") and "_simd_vf_0(" in row)
    wait = next(row for row in rows if "asc_sync_wait(PIPE_MTE2, PIPE_V" in row)
    extra = "\n".join([*rows[:at], "  asc_sync();", *rows[at:]])
    found = {"good": text, "racy": text.replace(wait, ""), "extra": extra}
    for name, body in found.items():
        (tmp_path / f"{name}.asc").write_text(body)
    return {name: str(tmp_path / f"{name}.asc") for name in found}


def test_advise_names_the_barrier(files, capsys):
    assert main(["advise", files["extra"], *FILE]) == 1
    assert "AK-ADVICE-001: asc_sync" in capsys.readouterr().out
    assert main(["advise", *FUNCTION, *ARGS]) == 0
    assert "nothing to leave out" in capsys.readouterr().out


def test_an_order_is_found_kept_and_repeated(files, tmp_path, capsys):
    order = str(tmp_path / "order.json")
    assert main(["replay", files["racy"], *FILE, "--save", order]) == 1
    said = capsys.readouterr().out
    assert main(["replay", files["racy"], *FILE, "--schedule", order]) == 1
    effect = said.splitlines()[0].partition(": ")[2]
    assert "bytes differ" in effect and effect in capsys.readouterr().out
    assert main(["replay", files["good"], *FILE, "--schedule", order]) == 2  # of another kernel
    assert main(["replay", *FUNCTION, *ARGS, "--seeds", "5"]) == 0


def test_mutate_counts_who_notices(files, capsys):
    assert main(["mutate", *FUNCTION, *ARGS]) == 0
    said = capsys.readouterr().out
    assert "mutants of synchronisation" in said and "AK-RACE-001" in said
    assert main(["mutate", files["racy"], *FILE]) == 2
    assert main(["mutate", *FUNCTION, *ARGS, "output=json"]) == 2
