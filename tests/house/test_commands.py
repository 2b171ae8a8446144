"""doctor, status and env: exit codes, outputs, and one-line errors."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ascendkit.doctor import env, status
from ascendkit.doctor.show import markdown
from ascendkit.doctor.variables import PREFIX, VARIABLES
from tests.house.helpers import ROOT, python, tracked

TYPO = PREFIX + "PLATFROM"
"""Put together, so that the search for names of variables does not take it for one."""


@pytest.mark.parametrize(
    "argv, wanted",
    [
        (["doctr"], "nearest: doctor"),
        (["doctor", "output=jsn"], "json"),
        (["doctor", "outptu=json"], "output"),
        (["status", "json"], "key=value"),
        (["env", "output=[table]"], "one value"),
        (["env", "output="], "key=value"),
        ([""], "wanted one of budget, check"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(argv: list[str], wanted: str) -> None:
    done = python("-m", "ascendkit", *argv)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert wanted in done.stderr


def test_no_command_lists_the_commands() -> None:
    for argv, code in (([], 2), (["--help"], 0)):
        done = python("-m", "ascendkit", *argv)
        assert done.returncode == code
        assert "doctor, " in done.stdout


@pytest.mark.parametrize("command", ["doctor", "status", "env"])
def test_json_and_table_say_the_same(command: str) -> None:
    shown = python("-m", "ascendkit", command, env={"COLUMNS": "1000"}).stdout
    assert "\x1b" not in shown, "colour codes in a pipe"
    for rows in json.loads(python("-m", "ascendkit", command, "output=json").stdout).values():
        for row in rows:
            for cell in row.values():
                assert cell in shown


def children_s() -> float:
    """Processor time of finished children: what else this machine does is not in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_doctor_reads_versions_and_starts_quickly() -> None:
    seconds = []
    for _ in range(3):
        begin = children_s()
        done = python("-m", "ascendkit", "doctor", "output=json", hidden=("torch", "tilelang"))
        seconds.append(children_s() - begin)
    assert done.returncode == 0, done.stderr
    packages = {row["package"]: row for row in json.loads(done.stdout)["packages"]}
    assert packages["torch"]["pinned"] == "2.13.0"
    assert packages["numpy"]["state"] == "as pinned"
    assert min(seconds) < 0.5


def test_doctor_fails_where_a_package_is_out_of_range(tmp_path) -> None:
    info = tmp_path / "rich-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rich\nVersion: 1.0\n")
    done = python("-m", "ascendkit", "doctor", "output=json", env={"PYTHONPATH": str(tmp_path)})
    rows = {row["package"]: row for row in json.loads(done.stdout)["packages"]}
    assert rows["rich"]["found"] == "1.0"
    assert rows["rich"]["state"] == "wrong"
    assert done.returncode == 1


@pytest.mark.parametrize("gone", ["yaml", "rich", "packaging"])
def test_doctor_of_a_broken_installation_is_one_line(gone: str) -> None:
    done = python("-m", "ascendkit", "doctor", hidden=(gone,))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and gone in done.stderr


def test_every_name_of_an_ascend_device_leads_to_its_architecture() -> None:
    from ascendkit.doctor.machine import aliases, arch_of

    table = {row[3]: row for row in aliases()}
    assert "A5" in table["dav-3510"][0] and "950" in table["dav-3510"][1]
    for soc in ("Ascend950PR_9579", "Ascend950DT_9582", "Ascend910_9599", "Ascend 950PR"):
        wanted = "dav-3510" if soc != "Ascend910_9599" else None
        assert arch_of(soc) == (wanted or arch_of("Ascend910_95"))
    assert arch_of("Ascend910B2") == arch_of("Ascend910_9391") == "dav-2201"
    assert arch_of("Ascend310P") is None


def test_the_written_status_is_fresh() -> None:
    wanted = f"{status.HEADER}\n{markdown(status.tables())}"
    written = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")
    assert written == wanted, "docs/status.md is stale: run `make status` and commit it"


def test_every_variable_in_the_source_is_in_the_table() -> None:
    used: dict[str, Path] = {}
    for path in tracked("*.py", "*.sh", "Makefile", ".ci/run", "*.md"):
        for name in re.findall(rf"(?<!-D)\b{PREFIX}[A-Z0-9_]+\b", path.read_text(encoding="utf-8")):
            used.setdefault(name, path)
    # C++ has macros of the same spelling; what it reads from the environment stands in quotes.
    for path in tracked("*.h", "*.cpp", "*.cc", "*.hpp"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(rf'getenv\("({PREFIX}[A-Z0-9_]+)"\)', text):
            used.setdefault(name, path)
    for path in tracked("ascendkit/jit/*.py"):
        for name in re.findall(r'"(JIT_[A-Z0-9_]+)"', path.read_text(encoding="utf-8")):
            used.setdefault(PREFIX + name, path)
    macros = {n for n, p in used.items() if n in _macros()}
    missing = {n: str(p) for n, p in used.items() if n not in VARIABLES and n not in macros}
    assert not missing, f"add to ascendkit/doctor/variables.py: {missing}"
    assert set(VARIABLES) <= set(used), f"nothing reads {set(VARIABLES) - set(used)}"


def _macros() -> set[str]:
    """Names that C++ gets by -D or #define: they are not variables of the environment."""
    found: set[str] = set()
    for path in tracked("*.py", "*.h", "*.cpp", "*.cc", "*.hpp"):
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(rf"(?:-D|#\s*define\s+)({PREFIX}[A-Z0-9_]+)", text))
    return found


def test_env_shows_values_and_names_a_typo() -> None:
    done = python("-m", "ascendkit", "env", env={"ASCENDKIT_PLATFORM": "cuda", TYPO: "x"})
    assert done.returncode == 1
    assert f"{TYPO} is set, but nothing reads it; nearest: ASCENDKIT_PLATFORM" in done.stdout
    rows, strange = env.report({"ASCENDKIT_SEED": "7", "HOME": "/"})
    assert {r[0]: r[2] for r in rows}["ASCENDKIT_SEED"] == "7"
    assert strange == []


def test_every_large_command_is_reached_through_the_small_one() -> None:
    from ascendkit.__main__ import commands

    for name in sorted(set(commands()) & {"budget", "check", "compare", "emulator", "jit"}):
        direct = python("-m", f"ascendkit.{name}", "--help")
        through = python("-m", "ascendkit", name, "--help")
        assert (through.returncode, through.stdout) == (direct.returncode, direct.stdout), name


@pytest.mark.parametrize("command", ["doctor", "status", "env"])
def test_a_reader_that_leaves_ends_a_table_with_141(command):
    """1 means a finding, so a closed pipe under a rich table must not give it."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-m", "ascendkit", command], stdout=writer, cwd=ROOT)
    finally:
        os.close(writer)
    assert done.returncode == 141
