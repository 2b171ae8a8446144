"""Ranks that live as long as the session: starting processes costs more than most tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ep_comm.launch import Pool, available

_pools: dict[tuple[str, int, int | None], Pool] = {}


@pytest.fixture(scope="session")
def pool() -> Iterator[Callable[..., Pool]]:
    """``pool(backend, ranks, scaleup_ranks)``: started once, ended with the session."""

    def get(backend: str, ranks: int, near: int | None = None) -> Pool:
        reason = available(backend)
        if reason:
            pytest.skip(f"{backend}: {reason}")
        key = (backend, ranks, near)
        if key not in _pools:
            # Idle ranks of another pool poll: on two cores they would slow this one down.
            for other in [k for k in _pools if k[0] != "threads"]:
                _pools.pop(other).close()
            _pools[key] = Pool(backend, ranks, near)
        return _pools[key]

    yield get
    for one in _pools.values():
        one.close()
    _pools.clear()


def pytest_configure(config: pytest.Config) -> None:
    """The mark is xdist's, and tests also run without it."""
    config.addinivalue_line("markers", "xdist_group(name): tests of one worker")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker for all of them: they start many processes and look at what /dev/shm holds."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.xdist_group("ep_comm"))
