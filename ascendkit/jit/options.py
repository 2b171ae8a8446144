"""Typed, immutable options with one override rule: unset inherits, anything else overrides."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self, TypeVar

from ascendkit.errors import bad_type


class Unset(Enum):
    """The type of ``UNSET``."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        raise TypeError("an option was read before it was merged with its defaults")


UNSET: Any = Unset.UNSET
"""An option that was not given. Typed ``Any`` so that option fields keep their plain types."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of option records. Every field of a subclass has the default ``UNSET``."""

    def over(self, defaults: Self) -> Self:
        """These options where set, ``defaults`` elsewhere; neither operand changes.

        An explicit False, 0, "" or () overrides.
        """
        if type(self) is not type(defaults):
            raise bad_type("options", self, type(defaults).__name__)
        inherited = {
            field.name: getattr(defaults, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) is UNSET
        }
        return dataclasses.replace(self, **inherited) if inherited else self

    def metadata(self) -> dict[str, object]:
        """Field names to values fit for JSON; an unset option is None."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def unset(self) -> tuple[str, ...]:
        """Names of the options still without a value."""
        return tuple(f.name for f in dataclasses.fields(self) if getattr(self, f.name) is UNSET)


@dataclass(frozen=True, kw_only=True)
class CompilerOptions(Options):
    """Options of every backend's compiler.

    Args:
        post_hook: script relative to ``Config.library_root`` that edits the artifact in place after
            compiling; "" for none. None inherits, so it cannot clear a default hook.
    """

    post_hook: str = UNSET

    def __post_init__(self) -> None:
        if self.post_hook is None:
            object.__setattr__(self, "post_hook", UNSET)
        check(self, "post_hook", str)


@dataclass(frozen=True, kw_only=True)
class LaunchOptions(Options):
    """Options of every backend's launch."""


CompilerT = TypeVar("CompilerT", bound=CompilerOptions)
LaunchT = TypeVar("LaunchT", bound=LaunchOptions)


def check(options: Options, name: str, kind: type) -> None:
    """Raise a TypeError unless option ``name`` is unset or exactly a ``kind``."""
    value = getattr(options, name)
    # bool is an int to isinstance, and an optimisation level of True is a mistake.
    if value is not UNSET and type(value) is not kind:
        raise bad_type(f"{type(options).__name__}.{name}", value, kind.__name__)


def freeze_texts(options: Options, name: str) -> None:
    """Turn option ``name`` into a tuple of str, or raise a TypeError."""
    value = getattr(options, name)
    if value is UNSET:
        return
    what = f"{type(options).__name__}.{name}"
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise bad_type(what, value, "a sequence of str, one item an argument")
    items = tuple(value)
    for item in items:
        if not isinstance(item, str):
            raise bad_type(what, item, "str items")
        if "\0" in item:
            raise ValueError(f"{what}: got an argument with a NUL byte, wanted none")
    object.__setattr__(options, name, items)


def _plain(value: object) -> object:
    if value is UNSET:
        return None
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, bool)) else str(value)
