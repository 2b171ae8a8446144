"""``python -m ascendkit.budget``: whole-step accounting. ``--help`` lists the keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ascendkit import cli
from ascendkit.budget import diff as differ
from ascendkit.budget import sweep as sweeper
from ascendkit.budget.explain import explain
from ascendkit.budget.goldens import goldens
from ascendkit.budget.inputs import changed, steps, what_if_text
from ascendkit.budget.record import as_json
from ascendkit.budget.report import print_steps
from ascendkit.budget.step import Step
from ascendkit.budget.usage import check_usage, composed, given
from ascendkit.errors import bad_value

Config = dict[str, Any]


def main(argv: Sequence[str]) -> int:
    """Run one action; returns the exit code."""
    config = composed(argv)
    legal = OUTPUTS[config["action"]]
    if config["output"] not in legal:
        what = f"{' or '.join(legal)} for action={config['action']}"
        raise bad_value("output", config["output"], what, legal[0])
    check_usage(config, argv)
    return ACTIONS[config["action"]](config, argv)


def _report(config: Config, argv: Sequence[str]) -> int:
    got = steps(config)
    if config["output"] == "json":
        _write(config, json.dumps(as_json(got, config["acceptance"]), indent=1) + "\n")
    elif config["output"] == "trace":
        from ascendkit.budget.trace import trace

        _write(config, json.dumps(trace(got), separators=(",", ":")) + "\n")
    elif config["output"] == "html":
        from ascendkit.budget.page import page

        _write(config, page(got, config["acceptance"], command(argv)))
    else:
        print_steps(cli.console(), got, config["acceptance"], what_if_text(config))
    return 0


def command(argv: Sequence[str]) -> str:
    """The command that made a report; where it was written does not belong to it."""
    kept = [a for a in argv if not a.startswith("file=")]
    return " ".join(["python -m ascendkit.budget", *(f"'{a}'" if "[" in a else a for a in kept)])


def _explain(config: Config, argv: Sequence[str]) -> int:
    if not config["op"]:
        raise bad_value("op", config["op"], "an operator line or op name for action=explain")
    text = ""
    for step in steps(config):
        lines = list(explain(step, config["op"]))
        if config["output"] == "json":
            text += json.dumps({"device": step.device.key, "explain": lines}, indent=1) + "\n"
            continue
        head = f"{step.model.key} {step.plan.phase} on {step.device.key}"
        text += "\n".join([head, *lines]) + "\n"
    _write(config, text)
    return 0


def _diff(config: Config, argv: Sequence[str]) -> int:
    if not config["against"]:
        raise bad_value("against", config["against"], "keys of the second plan", "[hardware=h200]")
    a, b = _single(config), _single(changed(argv, config["against"]))
    names = (a.device.key, " ".join(map(str, config["against"])))
    if config["output"] == "json":
        _write(config, json.dumps(differ.as_json(a, b, names), indent=1) + "\n")
    else:
        differ.print_diff(cli.console(), a, b, names)
    return 0


def _single(config: Config) -> Step:
    """The one step a side of a difference stands for."""
    got = steps(config)
    if len(got) > 1:
        what = "one device a side for action=diff"
        raise bad_value("hardware", config["hardware"], what, got[0].device.key)
    return got[0]


def _sweep(config: Config, argv: Sequence[str]) -> int:
    names = [name for name, _ in sweeper.axes(config)]
    records = list(sweeper.sweep(config, given(argv)))
    text = "".join(json.dumps(r) + "\n" for r in records)
    if config["output"] == "json":
        _write(config, text)
    elif config["file"]:
        _write(config, text)
        sweeper.print_pareto(cli.console(), records, names)
    else:
        sweeper.print_pareto(cli.console(), records, names)
    if all("error" in r for r in records):
        cli.console(stderr=True).print(f"no plan is legal: {records[0]['error']}")
        return 1
    return 0


def _validate(config: Config, argv: Sequence[str]) -> int:
    from ascendkit.budget.validate.report import as_json as scores
    from ascendkit.budget.validate.report import as_text
    from ascendkit.budget.validate.score import validate

    got = validate()
    if config["output"] == "json":
        _write(config, json.dumps(scores(got), indent=1) + "\n")
    else:
        _write(config, as_text(got))
    return 0


def _goldens(config: Config, argv: Sequence[str]) -> int:
    found = goldens()
    passed = sum(g.ok for g in found)
    if config["output"] == "json":
        rows = [{**g.__dict__, "ok": g.ok} for g in found]
        counts = {"passed": passed, "failed": len(found) - passed}
        _write(config, json.dumps({**counts, "rows": rows}, indent=1) + "\n")
    else:
        for g in found:
            published = "" if g.published is None else f", published {g.published} ({g.source})"
            print(
                f"{'ok  ' if g.ok else 'MISS'} {g.id} {g.metric}: {g.computed:.12g}"
                f" (recomputed {g.recomputed}{published}) {g.unit}"
            )
        print(f"{passed} passed, {len(found) - passed} failed")
    return 0 if found and passed == len(found) else 1


def _write(config: Config, text: str) -> None:
    cli.write(config["file"], text)


ACTIONS: dict[str, Callable[[Config, Sequence[str]], int]] = {
    "report": _report,
    "goldens": _goldens,
    "explain": _explain,
    "diff": _diff,
    "sweep": _sweep,
    "validate": _validate,
}
OUTPUTS: dict[str, tuple[str, ...]] = {
    "report": ("table", "json", "html", "trace"),
    "sweep": ("table", "json"),
    "validate": ("table", "json"),
    "diff": ("table", "json"),
    "explain": ("table", "json"),
    "goldens": ("table", "json"),
}

if __name__ == "__main__":
    cli.run(main)
