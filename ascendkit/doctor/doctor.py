"""``doctor``: versions, devices, and what can run here and why not the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ascendkit import cli
from ascendkit.backends import backend_available
from ascendkit.doctor import machine, versions
from ascendkit.doctor.show import Table, show
from ascendkit.platform import BACKENDS, PLATFORMS, Available, available


def main(argv: Sequence[str]) -> int:
    """Print the report; 1 where a base package is missing or an installed one is out of range."""
    output = cli.compose("doctor", argv)["output"]
    needs = versions.needs()
    show(tables(needs), output)
    wrong = [n for n in needs if n.state == "wrong"]
    wrong += [n for n in needs if n.state == "missing" and n.group == versions.BASE]
    return 1 if wrong else 0


def tables(needs: Sequence[versions.Need]) -> list[Table]:
    """All tables of the report, the machine first."""
    return [
        Table("Machine", ("what", "found"), machine.facts()),
        Table(
            "Packages",
            ("package", "for", "wanted", "pinned", "found", "state"),
            [
                (name, ", ".join(groups), n.wanted, n.pin or "-", n.found or "-", n.state)
                for (name, groups), n in _merged(needs)
            ],
        ),
        Table("Platforms", ("platform", "runs here", "why not"), _states(PLATFORMS, available)),
        Table(
            "Backends", ("backend", "runs here", "why not"), _states(BACKENDS, backend_available)
        ),
        Table(
            "Devices",
            ("platform", "device", "architecture"),
            machine.devices() or [("none", "no device is visible and none can be emulated", "-")],
        ),
        Table(
            "Names of Ascend devices",
            ("generation", "also called", "SoC names begin with", "architecture", "compiler flag"),
            machine.aliases(),
            ("sources: configs/data/socs.yaml",),
        ),
    ]


def _merged(
    needs: Sequence[versions.Need],
) -> list[tuple[tuple[str, list[str]], versions.Need]]:
    """One row a package and range; several extras may ask for the same."""
    rows: dict[tuple[str, str], tuple[list[str], versions.Need]] = {}
    for need in needs:
        groups, _ = rows.setdefault((need.name.lower(), need.wanted), ([], need))
        if need.group not in groups:
            groups.append(need.group)
    return [((need.name, groups), need) for groups, need in rows.values()]


def _states(names: Sequence[str], probe: Callable[[str], Available]) -> list[tuple[str, str, str]]:
    states = {name: probe(name) for name in names}
    return [(name, "yes" if s else "no", s.reason or "-") for name, s in states.items()]
