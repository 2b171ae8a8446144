"""Printing and assertions: text in order on standard output, failures with their line."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ascendkit.emulator.errors import EmulatorError
from tests.emulator.golden.program import Check, compiled
from tests.emulator.harness import launch

TEXT = (Path(__file__).parent / "words.asc").read_text()


def printed(run: Callable[[], None]) -> str:
    """What ``run`` writes to standard output, from C as well."""
    sys.stdout.flush()
    held = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            run()
        finally:
            os.dup2(held, 1)
            os.close(held)
        file.seek(0)
        return file.read().decode()


def expected(value: int) -> str:
    """TileLang's debug templates name message, block, type and value, in this order."""
    lines = [
        f"plain {value} 7 {0.5 * value:.3f} text",
        "msg='message' BlockIdx=0",
        f"msg='int' BlockIdx=0: dtype=int value={value}",
        f"msg='float' BlockIdx=0: dtype=float32 value={0.25 * value:f}",
        f"msg='half' BlockIdx=0: dtype=float16 value={0.5 * value:f}",
        f"msg='buffer' BlockIdx=0: buffer=x_ub, index=3, dtype=unsigned short value={value}",
        *(f"msg='simt' BlockIdx=0: dtype=int value={value + t}" for t in range(2)),
    ]
    return "\n".join(lines) + "\n"


def _text(rng: np.random.Generator, wrong: int) -> str:
    value = int(rng.integers(1, 1000))
    got = printed(lambda: launch(compiled(TEXT), [value ^ wrong, 0], trace=1))
    return "" if got == expected(value) else f"got {got!r}, wanted {expected(value)!r}"


def _assertions(rng: np.random.Generator, wrong: int) -> str:
    lines = TEXT.splitlines()
    # (what fails, text of its line, words before the failure)
    for fail, holds in ((1, "assert(fail"), (2, "device_assert(fail"), (3, "with_msg(fail")):
        raised: list[EmulatorError] = []

        def run(fail: int = fail, raised: list[EmulatorError] = raised) -> None:
            try:
                launch(compiled(TEXT), [5, 0 if wrong else fail], trace=1)
            except EmulatorError as error:
                raised.append(error)

        output = printed(run)
        if not raised or raised[0].code != "AK-ASSERT-001":
            return f"{holds}: got {raised}, wanted AK-ASSERT-001"
        if holds not in lines[raised[0].line - 1]:
            return f"{holds}: reported at line {raised[0].line}: {raised[0].text}"
        if fail == 3 and not output.endswith("Device assert failed: third BlockIdx=0\n"):
            return f"{holds}: printed {output!r}"
    return ""


CHECKS = [
    Check(
        ("printf", "debug_print_msg", "debug_print_var", "debug_print_buffer_value"),
        "text in order",
        _text,
        hooked=False,
    ),
    Check(("assert", "device_assert", "device_assert_with_msg"), "line", _assertions, hooked=False),
]
