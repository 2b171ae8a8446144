"""Keys that belong together: what an action reads, and a refusal of what it would ignore."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ascendkit import cli
from ascendkit.data import aliases, configs, load_yaml
from ascendkit.errors import bad_value

OWNERS = {"op": "explain", "over": "sweep", "against": "diff"}
"""Keys that one action reads."""
ALONE = ("goldens", "validate")
"""Actions that budget what the tables list, not what the keys say."""
WRITES = {"report": ("json", "html", "trace"), "explain": ("json",), "goldens": ("json",),
          "diff": ("json",)}  # fmt: skip
"""Outputs that ``file`` takes, by action; the others take every output."""
GROUPS = ("phase", "parallel")


def composed(argv: Sequence[str]) -> dict[str, Any]:
    """The configuration of a command line, with the layout of a small model laid under it."""
    for argument in argv:
        name, _, value = argument.partition("=")
        if name.strip() in GROUPS and value.strip()[:1] in ("[", "{"):
            raise bad_value(name.strip(), value, "one value; action=diff and action=sweep take two")
    return laid_out(cli.compose("budget", argv), given(argv))


def given(argv: Sequence[str]) -> set[str]:
    """Names of the keys on a command line."""
    return {a.partition("=")[0].strip() for a in argv}


def laid_out(config: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """``config`` with the default layout of its model, where that has one of its own.

    Args:
        names: keys that were given and stay as they are; ``parallel`` keeps all of the layout.
    """
    key = aliases().get(str(config["model"]).lower().replace("-", "_").replace(".", "_"), "")
    own = _layouts().get(key, {}).get(config["phase"], {})
    kept = {*names, *(("ranks", "pp", "ep") if "parallel" in names else ())}
    return {**config, **{k: v for k, v in own.items() if k not in kept}}


def check_usage(config: Mapping[str, Any], argv: Sequence[str]) -> None:
    """Raise ValueError for a key that the action would ignore."""
    action = config["action"]
    for name, owner in OWNERS.items():
        if config[name] and action != owner:
            raise bad_value(name, config[name], f"none unless action={owner}")
    if action in ALONE:
        extra = sorted(given(argv) - {"action", "output", "file"})
        if extra:
            wanted = f"only output and file beside action={action}"
            raise bad_value("keys", ", ".join(extra), wanted)
    if config["file"] and config["output"] not in WRITES.get(action, (config["output"],)):
        wanted = f"none unless output={'|'.join(WRITES[action])} for action={action}"
        raise bad_value("file", config["file"], wanted)
    if config["acceptance"] is not None and config["phase"] != "decode" and action not in ALONE:
        raise bad_value("acceptance", config["acceptance"], "none unless phase=decode")
    if config["time"] == "peak":
        for name, usual in (("launch", "graph"), ("overlap", "auto"), ("measured", [])):
            if config[name] != usual:
                raise bad_value(name, config[name], "none with time=peak, which leaves it out")


@lru_cache(maxsize=1)
def _layouts() -> dict[str, Any]:
    return load_yaml(configs() / "layouts.yaml")
