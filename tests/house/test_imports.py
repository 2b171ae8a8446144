"""Importing the suite is quick and brings nothing heavy with it."""

from __future__ import annotations

import json

import pytest

from ascendkit.registry import components, ops
from tests.house.helpers import python

HEAVY = {"torch", "torch_npu", "tilelang", "tvm", "z3", "hydra", "omegaconf", "numpy", "rich"}
LIMIT_S = 0.5

TIMED = """
import json, sys, time
begin = time.process_time()
import {name}
seconds = time.process_time() - begin
print(json.dumps([seconds, sorted({{m.partition(".")[0] for m in sys.modules}})]))
"""


@pytest.mark.parametrize("name", ["ascendkit", "ascendkit.budget", *components()])
def test_import_is_quick_and_light(name: str) -> None:
    best = float("inf")
    for _ in range(3):
        done = python("-c", TIMED.format(name=name))
        assert done.returncode == 0, done.stderr
        seconds, modules = json.loads(done.stdout)
        assert not HEAVY & set(modules), f"import {name} pulls {sorted(HEAVY & set(modules))}"
        best = min(best, seconds)
    # Processor time, best of three: what else this machine does is not the import's fault.
    assert best < LIMIT_S, f"import {name} takes {best:.2f} s"


def test_every_op_folder_and_its_cost_are_light() -> None:
    names = [n for op in ops().values() for n in (op.name, f"{op.name}.cost") if _exists(op, n)]
    code = f"""
import importlib, json, sys
heavy = {sorted(HEAVY)!r}
for name in {names!r}:
    importlib.import_module(name)
    pulled = [h for h in heavy if h in sys.modules]
    if pulled:
        sys.exit(f"import {{name}} pulls {{pulled}}")
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert names


def _exists(op: object, name: str) -> bool:
    return not name.endswith(".cost") or op.has("cost")  # type: ignore[attr-defined]


def test_the_commands_that_need_no_torch_run_without_it() -> None:
    hidden = ("torch", "tilelang", "torch_npu", "z3", "mpi4py")
    for argv in (("ascendkit", "doctor"), ("ascendkit", "status"), ("ascendkit", "env")):
        done = python("-m", *argv, hidden=hidden)
        assert done.returncode == 0, f"{argv}: {done.stderr}"
    doctor = python("-m", "ascendkit", "doctor", "output=json", hidden=hidden)
    states = {row["platform"]: row for row in json.loads(doctor.stdout)["platforms"]}
    assert all(row["runs here"] == "no" for row in states.values())
    assert "torch" in states["reference"]["why not"]
