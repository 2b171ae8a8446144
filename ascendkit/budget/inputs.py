"""From the keys of the command to steps: composing, checking, what-ifs, formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ascendkit.budget.plan import plan
from ascendkit.budget.step import Step, budget
from ascendkit.budget.usage import composed
from ascendkit.errors import bad_value
from ascendkit.hardware import Device, device
from ascendkit.model import model
from ascendkit.model.config import with_formats

Config = Mapping[str, Any]
FIXED = ("over", "against", "action", "output", "file", "op", "measured")
"""Keys that say what the command does, not what is budgeted."""


def steps(config: Config) -> list[Step]:
    """One step for every device of the configuration."""
    if config["measured"]:
        from ascendkit.budget.curves.records import adopt

        adopt(map(str, config["measured"]))
    m = with_formats(model(config["model"]), config["format"])
    p = plan({**config, "routing": _routing(config["routing"])}, m)
    accepted = config["acceptance"]
    number = isinstance(accepted, (int, float)) and not isinstance(accepted, bool)
    if accepted is not None and not (number and 0 <= accepted <= p.mtp):
        raise bad_value("acceptance", accepted, f"between 0 and mtp = {p.mtp}", p.mtp)
    chosen = dict.fromkeys(device(name) for name in config["hardware"])
    if not chosen:
        raise bad_value("hardware", config["hardware"], "at least one device", "h200")
    return [budget(m, p, scaled(d, config["what_if"]), config["time"]) for d in chosen]


def _routing(value: Any) -> Any:
    """A list of one name as the name; ``zipf: 1`` is a mapping to YAML and a name to the user."""
    if not isinstance(value, list) or len(value) != 1:
        return value
    (one,) = value
    if isinstance(one, dict) and len(one) == 1:
        ((name, steep),) = one.items()
        return f"{name}:{'' if steep is None else steep}"
    return one if isinstance(one, str) else value


def scaled(d: Device, factors: Mapping[str, float]) -> Device:
    """The device with the factors of ``what_if``; the same object where there are none."""
    wanted = tuple(sorted((k, float(v)) for k, v in factors.items() if v != 1.0))
    return _scaled(d, wanted) if wanted else d


@lru_cache(maxsize=256)
def _scaled(d: Device, factors: tuple[tuple[str, float], ...]) -> Device:
    return d.scaled(**dict(factors))


def changed(argv: Sequence[str], more: Iterable[str]) -> dict[str, Any]:
    """The configuration of ``argv`` with further ``key=value`` arguments laid over it."""
    texts = [str(text) for text in more]
    names = {text.partition("=")[0].strip() for text in texts}
    for name in sorted(names & set(FIXED)):
        raise bad_value("against", name, "keys of a plan, not of the command", "hardware=b200")
    kept = [a for a in argv if a.partition("=")[0].strip() not in names]
    return composed([*kept, *texts])


def what_if_text(config: Config) -> str:
    """``hbm x1.2`` for every factor that is not one."""
    return ", ".join(f"{k} x{v:g}" for k, v in config["what_if"].items() if v != 1.0)
