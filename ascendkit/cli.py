"""The edge of every command: ``key=value`` arguments in, plain containers out, one-line errors.

A command is ``configs/<name>.yaml``. Its keys are the command's keys and its values the defaults,
so the type of a default is the type wanted (a null default takes any scalar, a list default also
takes one scalar). The reserved mapping ``help`` holds ``summary``, ``examples``, ``keys`` (one
sentence a key) and ``choices`` (the closed set of a key); it is checked here and never returned.

Hydra stays an edge detail of this file: a config with a ``defaults`` list is composed by Hydra
(groups, interpolation). A config without one is plain YAML and needs no Hydra. Either way the
``key=value`` arguments are read by the same few lines below, so they mean the same everywhere.
"""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ascendkit import data
from ascendkit.errors import bad_value, unknown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

USAGE_ERROR = 2
BASE_PACKAGES = ("hydra", "omegaconf", "packaging", "rich", "yaml")
HELP = ("-h", "--help", "help")


def compose(config_name: str, argv: Sequence[str]) -> dict[str, Any]:
    """Read ``configs/<config_name>.yaml`` and lay the ``key=value`` arguments over it.

    Nested keys are dotted (``parallel.tp=8``); a key that is a folder of ``configs`` selects a
    file of that folder (``workload=decode``). ``--help`` prints keys and choices and exits.

    Raises:
        ValueError: unknown key or choice (names the nearest), wrong type, malformed argument or
            YAML (names file, line and column).
    """
    if any(a in HELP for a in argv):
        print_help(config_name)
        raise SystemExit(0)
    pairs = [_split(a) for a in argv]
    groups = {k: v for k, v in pairs if k in _groups()}
    config, about = _read(config_name, groups)
    for key, text in pairs:
        if key not in groups:
            _put(config, key, text)
    config = _resolved(config)
    for key, legal in about.get("choices", {}).items():
        got = _at(config, key)
        for one in got if isinstance(got, list) else [got]:
            if one not in legal:
                raise unknown(key, one, map(str, legal))
    return config


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Run a command and exit with its code; usage errors are one line and exit code 2.

    A reader that went away (``| head``) ends the command quietly, as does Ctrl-C with code 130.
    Text that the terminal's encoding lacks is escaped.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        elif stream is None:
            # Closed by the caller (>&-): the exit code still counts.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        try:
            code = main(sys.argv[1:])
        finally:
            # Also after --help: what cannot be written must be known before the code is given.
            sys.stdout.flush()
    except (ValueError, TypeError) as e:
        fail(str(e))
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in BASE_PACKAGES:
            raise
        # From a checkout without an installation: no traceback for what one command cures.
        fail(f"{e}; a base package is missing: pip install ascendkit", 1)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        _drop_stdout()
        raise SystemExit(141) from None
    except OSError as e:
        _drop_stdout()
        fail(str(e), 1)
    raise SystemExit(code)


def write(file: str | None, text: str) -> None:
    """To ``file``, which is then named on stderr, or to the terminal where it is None.

    Raises ValueError where it cannot be written.
    """
    if not file:
        sys.stdout.write(text)
        return
    try:
        with open(file, "wb") as f:
            size = f.write(text.encode())
    except OSError as e:
        raise ValueError(f"file: cannot write {file!r}: {e.strerror}") from None
    print(f"wrote {file} ({size:,} bytes)", file=sys.stderr)


def fail(message: str, code: int = USAGE_ERROR) -> NoReturn:
    """Print one line on stderr and exit."""
    print("error: " + " ".join(message.split()), file=sys.stderr)
    raise SystemExit(code)


def _drop_stdout() -> None:
    """What is still buffered cannot be written: let the interpreter flush it nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def console(stderr: bool = False) -> Console:
    """A rich console; plain text without colour when it is not a terminal."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            # Rich would exit with 1, which here means a finding; run() knows what to do.
            raise BrokenPipeError

    # A pipe has no width of its own, and a table cut at 80 columns loses its figures.
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else 160
    # What is printed is text: '.[mpi]' is no style.
    return Piped(stderr=stderr, width=width, highlight=False, markup=False)


def plain_table() -> Table:
    """A table without lines: readable in a terminal, in a log and in a pasted issue."""
    from rich.table import Table

    return Table(box=None, header_style="bold", pad_edge=False)


def print_help(config_name: str) -> None:
    """Print what the command does, its keys with defaults and choices, and examples."""
    config, about = _read(config_name, {})
    choices = about.get("choices", {})
    usage = about.get("usage") or f"python -m ascendkit.{config_name} [key=value ...]"
    print(usage + "\n")
    print(about.get("summary", "").strip() + "\n")
    rows = [(f"{g}=...", f"one of {', '.join(_choices(g))}") for g in _groups() if g in config]
    for key, default in _leaves(config):
        text = str(about.get("keys", {}).get(key, ""))
        legal = "|".join(map(str, choices.get(key, ())))
        rows.append((f"{key}={_shown(default)}", f"{legal}  {text}".strip() if legal else text))
    wide = max(len(left) for left, _ in rows)
    for left, right in rows:
        print(f"  {left:<{wide}}  {right}".rstrip())
    for example in ("", *about.get("examples", ())):
        print(f"  {example}".rstrip())


def _split(argument: str) -> tuple[str, str]:
    key, eq, text = argument.partition("=")
    if argument.startswith(("+", "~")):
        raise ValueError(f"argument {argument!r}: keys can be set, not added or deleted")
    if not eq or not key.strip() or not text.strip() or argument.startswith("-"):
        raise bad_value("argument", argument, "key=value (--help lists the keys)")
    return key.strip(), text.strip()


def _read(name: str, groups: Mapping[str, str]) -> tuple[Any, dict[str, Any]]:
    """The config as a dict (or a DictConfig, where Hydra composed it) and its help."""
    path = data.configs() / f"{name}.yaml"
    if not path.is_file():
        raise unknown("config", name, (p.stem for p in data.configs().glob("*.yaml")))
    raw = data.load_yaml(path)
    about: dict[str, Any] = raw.pop("help", None) or {}
    if "defaults" not in raw:
        return raw, about
    for group, choice in groups.items():
        for one in choice.strip("[]").split(","):
            if one.strip() not in _choices(group):
                raise unknown(group, one.strip(), _choices(group))
    try:
        from hydra import compose as hydra_compose
        from hydra import initialize_config_dir
        from hydra.errors import HydraException
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException
    except ModuleNotFoundError as e:
        raise ValueError(f"config {name!r} selects groups: pip install hydra-core ({e})") from None
    try:
        with initialize_config_dir(str(data.configs().resolve()), version_base="1.3"):
            config = hydra_compose(name, [f"{g}={c}" for g, c in groups.items()])
    except (HydraException, OmegaConfBaseException) as e:
        raise ValueError(f"{path}: {e}") from None
    OmegaConf.set_struct(config, False)
    config.pop("help", None)
    return config, about


def _groups() -> tuple[str, ...]:
    return tuple(
        p.name for p in sorted(data.configs().iterdir()) if p.is_dir() and p.name != "data"
    )


def _choices(group: str) -> list[str]:
    return sorted(p.stem for p in (data.configs() / group).glob("*.yaml"))


def _put(config: Any, key: str, text: str) -> None:
    names = dict(_leaves(config))
    if key not in names:
        raise unknown("key", key, names)
    value = _value(key, text, names[key])
    *parents, last = key.split(".")
    for parent in parents:
        config = config[parent]
    config[last] = value


def _value(key: str, text: str, default: Any) -> Any:
    """``text`` as the type of ``default``."""
    wanted = {bool: "true or false", int: "an integer", float: "a finite number"}
    # The type of an interpolation is that of what it points to, which is not known here.
    kind: Any = type(None) if str(default).startswith("${") else type(default)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind is int:
            return int(text)
        if kind is float and math.isfinite(float(text)):
            return float(text)
    except (ValueError, KeyError):
        pass
    if kind in wanted:
        raise bad_value(key, text, wanted[kind])
    # A plain word is text whatever YAML would make of it: op=*, device=910b, day=2026-01-01.
    got = text if kind is str and text[0] not in "[{'\"" else _yaml(key, text)
    if isinstance(default, Sequence) and not isinstance(default, str):
        return got if isinstance(got, list) else [got]
    if isinstance(got, (list, dict)):
        raise bad_value(key, text, "one value")
    return text if kind is str and not isinstance(got, str) else got


def _yaml(key: str, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise bad_value(key, text, "a value or a [list, of, values]") from None


def _leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values, as written: interpolations stay text."""
    if not isinstance(config, dict) and hasattr(config, "_content"):
        from omegaconf import OmegaConf

        config = OmegaConf.to_container(config, resolve=False)
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _resolved(config: Any) -> dict[str, Any]:
    if isinstance(config, dict):
        return config
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        got: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    except OmegaConfBaseException as e:
        raise ValueError(str(e)) from None
    return got


def _at(config: Mapping[str, Any], key: str) -> Any:
    value: Any = config
    for name in key.split("."):
        value = value[name]
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)
