"""Options: the override rule, types, metadata; host flags in order."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ascendkit.jit import UNSET, HostBackend, HostLaunchOptions, HostOptions, Toolkit
from ascendkit.jit.environment import Environment
from ascendkit.jit.host import DEFAULT_FLAGS, KERNEL_MACRO

BACKEND = HostBackend()


def defaults(**variables: str) -> HostOptions:
    return BACKEND.default_options(Environment("T", variables))


def kit(family: str = "gcc") -> Toolkit:
    return Toolkit(Path("/x"), ("id",), {"family": family})


def test_unset_inherits_and_anything_else_overrides() -> None:
    base = dataclasses.replace(
        defaults(), debug_info=True, post_hook="h.py", extra_flags=("-a",), optimize_level="3"
    )
    assert HostOptions().over(base) == base
    over = HostOptions(debug_info=False, post_hook="", extra_flags=(), optimize_level="0").over(
        base
    )
    assert (over.debug_info, over.post_hook, over.extra_flags) == (False, "", ())
    assert (over.optimize_level, over.standard) == ("0", base.standard)


def test_merging_changes_neither_side() -> None:
    base, given = defaults(), HostOptions(standard=17)
    before = (dataclasses.asdict(base), dataclasses.asdict(given))
    assert given.over(base) is not given
    assert (dataclasses.asdict(base), dataclasses.asdict(given)) == before


def test_none_cannot_clear_a_default_hook() -> None:
    base = dataclasses.replace(defaults(), post_hook="h.py")
    assert HostOptions(post_hook=None).over(base).post_hook == "h.py"


def test_options_are_frozen_and_hashable() -> None:
    options = HostOptions(extra_flags=["-a"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.standard = 17
    assert hash(options) == hash(HostOptions(extra_flags=("-a",)))


def test_unset_has_no_truth() -> None:
    with pytest.raises(TypeError, match=r"before it was merged"):
        bool(HostOptions().debug_info)
    assert repr(UNSET) == "UNSET"


def test_other_kinds_do_not_mix() -> None:
    with pytest.raises(TypeError, match=r"got HostLaunchOptions, wanted HostOptions"):
        HostLaunchOptions().over(defaults())


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"standard": 14}, ValueError, "got 14, wanted one of .*nearest legal: 17"),
        ({"standard": "20"}, TypeError, "got str, wanted int"),
        ({"standard": True}, TypeError, "got bool, wanted int"),
        ({"optimize_level": 2}, TypeError, "got int, wanted str"),
        ({"optimize_level": "4"}, ValueError, "wanted one of 0, 1"),
        ({"debug_info": 1}, TypeError, "got int, wanted bool"),
        ({"output": "kernal"}, ValueError, "nearest: kernel"),
        ({"flags": "-O2 -g"}, TypeError, "one item an argument"),
        ({"flags": [1]}, TypeError, "wanted str items"),
        ({"flags": ["a\0b"]}, ValueError, "NUL"),
        ({"link_inputs": "/x.o"}, TypeError, "a sequence of paths"),
        ({"link_inputs": Path("/x.o")}, TypeError, "a sequence of paths"),
        ({"post_hook": 1}, TypeError, "wanted str"),
    ],
)
def test_refused(fields: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        HostOptions(**fields)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"num_blocks": 0}, ValueError, "block count must be positive"),
        ({"num_blocks": -1}, ValueError, "got -1, wanted 1.*nearest legal: 1"),
        ({"num_blocks": 1 << 32}, ValueError, "nearest legal: 4294967295"),
        ({"num_blocks": 1.0}, TypeError, "got float"),
        ({"num_threads": 0}, ValueError, "thread count must be positive"),
    ],
)
def test_refused_launches(fields: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        HostLaunchOptions(**fields)


def test_metadata_is_null_where_unset() -> None:
    record = HostOptions(standard=20, link_inputs=["/a b.o"]).metadata()
    assert record["standard"] == 20
    assert record["link_inputs"] == ["/a b.o"]
    assert record["flags"] is None


def test_flag_order() -> None:
    options = HostOptions(
        optimize_level="3",
        debug_info=True,
        flags=["-f"],
        extra_flags=["-e"],
        link_flags=["-l"],
        extra_link_flags=["-m"],
    ).over(defaults())
    compiling, linking, native = BACKEND.flags(options, kit())
    head = ("-std=c++20", "-O3", "-g", "-fno-gnu-unique", "-frandom-seed=ascendkit")
    assert compiling == (*head, KERNEL_MACRO, "-f", "-e")
    assert linking == ("-shared", "-l", "-m")
    assert native == ()
    assert "-fno-gnu-unique" not in BACKEND.flags(options, kit("clang"))[0]


def test_native_flags_name_the_machine() -> None:
    options = HostOptions(extra_flags=["-march=native"]).over(defaults())
    native = BACKEND.flags(options, kit())[2]
    assert len(native) == 1
    assert native[0].strip()


def test_defaults_follow_the_environment() -> None:
    assert defaults().flags == DEFAULT_FLAGS
    assert defaults(T_JIT_CPP_STANDARD="23").standard == 23
    assert (defaults(T_JIT_DEBUG="1").debug_info, defaults(T_JIT_DEBUG="1").dump_asm) == (
        True,
        True,
    )
    quiet = defaults(DJ_JIT_DEBUG="1", T_JIT_DUMP_ASM="0")
    assert (quiet.debug_info, quiet.dump_asm) == (True, False)
    with pytest.raises(ValueError, match=r"T_JIT_CPP_STANDARD: invalid value"):
        defaults(T_JIT_CPP_STANDARD="latest")
