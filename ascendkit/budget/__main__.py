"""``python -m ascendkit.budget``: whole-step accounting. ``--help`` lists the keys."""

from __future__ import annotations

import json
import sys
from typing import Any

from ascendkit import cli
from ascendkit.budget.explain import explain
from ascendkit.budget.goldens import goldens
from ascendkit.budget.plan import plan
from ascendkit.budget.report import as_json, print_steps
from ascendkit.budget.step import Step, budget
from ascendkit.errors import bad_value
from ascendkit.hardware import device
from ascendkit.model import model


def main(argv: list[str]) -> int:
    """Run one action; returns the exit code."""
    config = cli.compose("budget", argv)
    if config["action"] == "goldens":
        return _goldens(config["output"])
    steps = _steps(config)
    if config["action"] == "explain":
        return _explain(steps, config)
    if config["output"] == "json":
        json.dump(as_json(steps, config["acceptance"]), sys.stdout, indent=1)
        print()
    else:
        print_steps(cli.console(), steps, config["acceptance"])
    return 0


def _steps(config: dict[str, Any]) -> list[Step]:
    m = model(config["model"])
    p = plan(config, m)
    accepted = config["acceptance"]
    if accepted is not None and not 0 <= accepted <= p.mtp:
        raise bad_value("acceptance", accepted, f"between 0 and mtp = {p.mtp}", p.mtp)
    chosen = dict.fromkeys(device(name) for name in config["hardware"])
    if not chosen:
        raise bad_value("hardware", config["hardware"], "at least one device", "h200")
    return [budget(m, p, d) for d in chosen]


def _explain(steps: list[Step], config: dict[str, Any]) -> int:
    if not config["op"]:
        raise bad_value("op", config["op"], "an operator line or op name for action=explain")
    for step in steps:
        lines = list(explain(step, config["op"]))
        if config["output"] == "json":
            print(json.dumps({"device": step.device.key, "explain": lines}, indent=1))
            continue
        print(f"{step.model.key} {step.plan.phase} on {step.device.key}")
        print("\n".join(lines))
    return 0


def _goldens(output: str) -> int:
    found = goldens()
    passed = sum(g.ok for g in found)
    if output == "json":
        rows = [{**g.__dict__, "ok": g.ok} for g in found]
        print(json.dumps({"passed": passed, "failed": len(found) - passed, "rows": rows}, indent=1))
    else:
        for g in found:
            published = "" if g.published is None else f", published {g.published} ({g.source})"
            print(
                f"{'ok  ' if g.ok else 'MISS'} {g.id} {g.metric}: {g.computed:.12g}"
                f" (recomputed {g.recomputed}{published}) {g.unit}"
            )
        print(f"{passed} passed, {len(found) - passed} failed")
    return 0 if found and passed == len(found) else 1


if __name__ == "__main__":
    cli.run(main)
