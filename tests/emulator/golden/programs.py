"""The checks that run whole kernels, and what their faults cannot show."""

from __future__ import annotations

from tests.emulator.golden import copies, cube, fixpipe, helpers, scalars, threads, together, words
from tests.emulator.golden.program import Check

PROGRAMS: dict[str, list[Check]] = {
    "scalars": scalars.CHECKS,
    "threads": threads.CHECKS,
    "copies": copies.CHECKS,
    "cube": cube.CHECKS,
    "fixpipe": fixpipe.CHECKS,
    "together": together.CHECKS,
    "words": words.CHECKS,
    "helpers": helpers.CHECKS,
}

_ONE_VALUE = {3: "one value, no lanes", 4: "one value, no lanes"}
UNSEEN: dict[str, dict[int, str]] = {
    **helpers.UNSEEN,
    **dict.fromkeys(
        (
            "laneid",
            "asc_shfl_xor",
            *(f"asc_reduce_{op}.simt" for op in ("add", "max", "min")),
            *(f"asc_atomic_{op}" for op in ("add", "max", "min")),
            "asc_load_dev",
            "asc_store_dev",
        ),
        _ONE_VALUE,
    ),
    **dict.fromkeys(
        ("asc_ballot", "asc_activemask"),
        _ONE_VALUE,
    ),
    "asc_fill_l1": {4: "a constant looks the same one lane further"},
    "asc_threadfence": dict.fromkeys((1, 2, 3, 4), "orders accesses; execution is in order"),
    "asc_sync_pipe": dict.fromkeys((1, 2, 3, 4), "a pipe is in order with itself anyway"),
    **{
        f"asc_set_mmad_direction_{d}": dict.fromkeys((1, 2, 3, 4), "changes time, not values")
        for d in "mn"
    },
}


def members() -> list[tuple[str, str]]:
    """(program, instruction) of every check."""
    return [
        (program, name)
        for program, checks in PROGRAMS.items()
        for name in dict.fromkeys(n for check in checks for n in check.names)
    ]
