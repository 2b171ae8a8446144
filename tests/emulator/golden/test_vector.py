"""Every vector instruction against its oracle, and every fault in one seen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies
from hypothesis import seed as seeded

from ascendkit.emulator.errors import EmulatorError
from tests.emulator.golden import draw
from tests.emulator.golden.case import Case, run
from tests.emulator.golden.families import FAMILIES, UNSEEN, bank, members
from tests.emulator.harness import FAULTS, fault
from tests.emulator.oracle.types import LANES

pytestmark = pytest.mark.emu
MEMBERS = [pytest.param(*member, id="-".join(member)) for member in members()]


@pytest.mark.parametrize("trace", [True, False], ids=["instrumented", "plain"])
@pytest.mark.parametrize("family", sorted(FAMILIES, key=lambda f: -len(FAMILIES[f])))
def test_bank_compiles(family: str, trace: bool) -> None:
    """First, so that workers compile different banks instead of waiting for each other."""
    assert bank(family).kernel.compile(trace=trace).symbol("ak_entry")


def verdicts(family: str, name: str, seed: int, trace: int = 1) -> Iterator[str]:
    """What each case of an instruction says; empty where it is right."""
    rng = np.random.default_rng(seed)
    for which, case in enumerate(FAMILIES[family]):
        if case.name == name:
            takes, before = case.inputs(rng)
            for scalars in case.scalar_sets(rng):
                yield run(bank(family), which, case, takes, before, scalars, trace=trace)


@pytest.mark.parametrize(("family", "name"), MEMBERS)
def test_instruction_matches_its_oracle(family: str, name: str, seed: int) -> None:
    wrong = [verdict for verdict in verdicts(family, name, seed) if verdict]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("family", "name"), MEMBERS)
def test_a_fault_in_the_instruction_is_seen(family: str, name: str, seed: int) -> None:
    unseen = []
    for kind, word in FAULTS.items():
        with fault(name, kind):
            try:
                seen = any(verdicts(family, name, seed))
            except EmulatorError:
                seen = True
        if not seen and kind not in UNSEEN.get(name, {}):
            unseen.append(word)
    assert not unseen, f"{name}: no case notices {', '.join(unseen)}"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plain_build_agrees(family: str, seed: int) -> None:
    """The build that users run, without hooks, gives the same bits."""
    rng = np.random.default_rng(seed)
    for which, case in enumerate(FAMILIES[family]):
        takes, before = case.inputs(rng)
        scalars = case.scalar_sets(rng)[0]
        plain, traced = (
            bank(family).run(which, takes, before, scalars, trace=trace) for trace in (0, 1)
        )
        assert all(map(np.array_equal, plain, traced)), f"{case.name} {case.form}"


@pytest.mark.parametrize("family", FAMILIES)
def test_chosen_inputs(family: str, seed: int) -> None:
    """Hypothesis picks case, lanes, mask and scalars, and shrinks what fails to the least."""

    @seeded(seed)
    @settings(
        max_examples=60,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies.data())
    def check(data: strategies.DataObject) -> None:
        which = data.draw(strategies.integers(0, len(FAMILIES[family]) - 1), "case")
        case = FAMILIES[family][which]
        takes, before = case.inputs(np.random.default_rng(0))
        takes = [
            _chosen(data, case, i, kind, array[:1])
            for i, (kind, array) in enumerate(zip(case.takes, takes))
        ]
        scalars = tuple(_code(data, kind, case) for kind in case.scalars)
        first = [b if b is None else b[:1] for b in before]
        verdict = run(bank(family), which, case, takes, first, scalars)
        assert not verdict, verdict

    check()


def _chosen(
    data: strategies.DataObject, case: Case, i: int, kind: str, base: np.ndarray
) -> np.ndarray:
    """One row of an operand: few lanes, repeated. Operands with rules keep their drawn values."""
    if kind == "bits":
        step = data.draw(strategies.sampled_from([1, 2, 3, 4, 8, 255]), "mask step")
        count = data.draw(strategies.integers(0, 256), "mask bits")
        return ((np.arange(256) % step == 0) & (np.arange(256) < count))[None]
    if i in case.drawers or kind not in LANES:
        return base
    lane = LANES[kind]
    codes = strategies.one_of(
        strategies.sampled_from(draw.specials(lane).tolist()),
        strategies.integers(0, (1 << 8 * lane.bytes) - 1),
    )
    few = data.draw(strategies.lists(codes, min_size=1, max_size=5), f"lanes of operand {i}")
    return np.resize(np.array(few, lane.code), (1, lane.count))


def _code(data: strategies.DataObject, kind: str, case: Case) -> int:
    if case.scalar_draw is not None:
        options = case.scalar_draw(np.random.default_rng(0), 1)[0].tolist()
        return data.draw(strategies.sampled_from(options), "scalar")
    return data.draw(strategies.integers(0, (1 << 8 * LANES[kind].bytes) - 1), "scalar")
