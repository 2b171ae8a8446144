"""Instructions that whole kernels show: copies, products, FixPipe, synchronisation, SIMT, text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ascendkit.emulator.errors import EmulatorError
from tests.emulator.golden.program import Check
from tests.emulator.golden.programs import PROGRAMS, UNSEEN, members
from tests.emulator.harness import FAULTS, fault

pytestmark = pytest.mark.emu
MEMBERS = [pytest.param(*member, id="-".join(member)) for member in members()]
CHECKS = [
    pytest.param(check, id=f"{program}-{i}-{check.names[0]}")
    for program, checks in PROGRAMS.items()
    for i, check in enumerate(checks)
]


@pytest.mark.parametrize("check", CHECKS)
def test_program_matches_its_oracle(check: Check, seed: int) -> None:
    verdict = check.run(np.random.default_rng(seed), 0)
    assert not verdict, f"{', '.join(check.names)} ({check.about}): {verdict}"


def verdicts(program: str, name: str, seed: int, kind: int) -> Iterator[bool]:
    """Whether each check of an instruction notices a fault."""
    for check in PROGRAMS[program]:
        if name not in check.names:
            continue
        try:
            if check.hooked:
                with fault(name, kind):
                    yield bool(check.run(np.random.default_rng(seed), 0))
            else:
                yield bool(check.run(np.random.default_rng(seed), 1))
        except EmulatorError:
            yield True


@pytest.mark.parametrize(("program", "name"), MEMBERS)
def test_a_fault_in_the_instruction_is_seen(program: str, name: str, seed: int) -> None:
    unseen = [
        word
        for kind, word in FAULTS.items()
        if kind not in UNSEEN.get(name, {}) and not any(verdicts(program, name, seed, kind))
    ]
    assert not unseen, f"{name}: no check notices {', '.join(unseen)}"
