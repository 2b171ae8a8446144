"""Many plans in one run: a JSON line each, and the plans that no other beats."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ascendkit.budget.inputs import FIXED, steps
from ascendkit.budget.usage import laid_out
from ascendkit.cli import plain_table
from ascendkit.errors import bad_value, unknown

if TYPE_CHECKING:
    from rich.console import Console


def axes(config: Mapping[str, Any]) -> list[tuple[str, list[Any]]]:
    """``[batch=16|32, ep=8|16]`` as axes. ValueError for keys or values that cannot be swept."""
    found = []
    for text in config["over"]:
        name, eq, values = str(text).partition("=")
        name = name.strip()
        if not eq or not values.strip():
            raise bad_value("over", text, "key=value|value|...", "batch=16|32")
        legal = [k for k in _flat(config) if k not in FIXED]
        if name not in legal:
            raise unknown("over", name, legal)
        found.append((name, [_value(v) for v in values.split("|")]))
    if not found:
        raise bad_value("over", config["over"], "at least one axis", "[batch=16|32|64]")
    return found


def sweep(config: Mapping[str, Any], given: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """One record for every plan and device; a plan that is not legal gives its error.

    Args:
        given: keys the user set beside the axes; a small model's own layout leaves them alone.
    """
    found = axes(config)
    for chosen in itertools.product(*(values for _, values in found)):
        keys = dict(zip((name for name, _ in found), chosen, strict=True))
        try:
            plan = _with(config, keys)
            for step in steps(laid_out(plan, {*given, *keys}) if "model" in keys else plan):
                yield {**keys, **_record(step, config["acceptance"])}
        except (ValueError, TypeError) as e:
            yield {**keys, "error": str(e)}


def _record(step: Any, acceptance: float | None) -> dict[str, Any]:
    have = step.device.hbm_bytes
    rate = step.rate * (1 + (acceptance or 0.0) * (step.plan.phase == "decode"))
    return {
        "device": step.device.key,
        "step_s": step.seconds,
        "interval_s": step.interval,
        "lower_bound": step.lower_bound if step.time else None,
        "p10_s": step.time.band[0] if step.time else None,
        "p90_s": step.time.band[1] if step.time else None,
        "claimed": step.time.claimed if step.time else None,
        "tokens_per_s_rank": rate,
        "tokens_per_s_user": (1 + (acceptance or 0.0)) / step.seconds,
        "ranks": step.plan.ranks,
        "memory": step.memory.total,
        "fits": None if have is None else step.memory.total <= have,
    }


def pareto(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records that fit and that none beats in throughput a rank and in time a step both.

    A lower bound beats nothing: such records take part only where there are no others.
    """
    legal = [r for r in records if "error" not in r and r["fits"] is not False]
    legal = [r for r in legal if not r.get("lower_bound")] or legal
    legal.sort(key=lambda r: (r["step_s"], -r["tokens_per_s_rank"]))
    best, out = 0.0, []
    for r in legal:
        if r["tokens_per_s_rank"] > best * (1 + 1e-12):
            best = r["tokens_per_s_rank"]
            out.append(r)
    return out


def print_pareto(console: Console, records: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """The plans on the front, and how many were tried."""
    front = pareto(records)
    table = plain_table()
    for name in (*names, "device", "step", "tokens/s per rank", "memory", "claimed"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in front:
        table.add_row(
            *(str(r[n]) for n in names), r["device"],
            f"{'>= ' if r['lower_bound'] else ''}{r['step_s'] * 1e3:.3f} ms",
            f"{'<= ' if r['lower_bound'] else ''}{r['tokens_per_s_rank']:.5g}",
            f"{r['memory'] / 1e9:.3g} GB", str(r["claimed"]),
        )  # fmt: skip
    console.print("plans that no other beats in step time and in tokens/s per rank", style="bold")
    console.print(table)
    errors = sum("error" in r for r in records)
    full = sum(r.get("fits") is False for r in records)
    console.print(
        f"{len(records)} tried, {errors} not legal, {full} do not fit, {len(front)} shown"
    )


def _with(config: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    got = {k: dict(v) if isinstance(v, Mapping) else v for k, v in config.items()}
    for name, value in keys.items():
        *parents, last = name.split(".")
        node = got
        for parent in parents:
            node = node[parent]
        node[last] = [value] if last in ("hardware", "routing") else value
    return got


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif key not in ("phase",):
            yield f"{prefix}{key}"


def _value(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise bad_value("over", text, "a value") from None
