"""Pins are exact, complete, and lie in the ranges the metadata states."""

from __future__ import annotations

import re
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from ascendkit.doctor import versions
from tests.house.helpers import tracked

MODULE_OF = {"pyyaml": "yaml", "hydra-core": "hydra"}


def lines() -> list[Requirement]:
    text = versions.constraints().read_text(encoding="utf-8")
    return [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]


def folded(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_line_is_one_exact_version_in_order() -> None:
    names = [folded(r.name) for r in lines()]
    assert names == sorted(set(names))
    for r in lines():
        assert re.fullmatch(r"==[0-9][0-9A-Za-z.]*", str(r.specifier)), str(r)


def test_pins_cover_the_metadata_and_lie_in_its_ranges() -> None:
    pinned = {folded(r.name): str(r.specifier)[2:] for r in lines()}
    for group, requirement in versions.declared():
        pin = pinned.get(folded(requirement.name))
        assert pin is not None, f"{group}: {requirement.name} is not pinned"
        assert requirement.specifier.contains(pin), f"{requirement}: pin {pin}"


def test_what_is_installed_is_pinned_and_needs_nothing_unpinned() -> None:
    """Walks the dependencies of our own extras that are installed here."""
    pinned = {folded(r.name) for r in lines()}
    todo = {folded(r.name) for group, r in versions.declared() if group != "npu"}
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        seen.add(name)
        try:
            needed = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            continue
        for text in needed:
            r = Requirement(text)
            if r.marker is None or r.marker.evaluate({"extra": ""}):
                todo |= {folded(r.name)} - seen
    # torch for CUDA brings its own exact nvidia-* packages; it pins them itself.
    loose = {n for n in seen - pinned if not n.startswith(("nvidia-", "cuda-", "triton"))}
    assert not loose, f"add to constraints.txt: {sorted(loose)}"


@pytest.mark.parametrize("name, version", [("torch", "2.13.0"), ("tilelang", "0.1.15")])
def test_the_two_versions_everything_is_measured_with(name: str, version: str) -> None:
    assert versions.pins()[name] == version


def test_every_base_package_is_imported_by_the_code() -> None:
    code = "\n".join(p.read_text(encoding="utf-8") for p in tracked("ascendkit/**.py"))
    for group, requirement in versions.declared():
        if group == versions.BASE:
            module = MODULE_OF.get(folded(requirement.name), requirement.name)
            pattern = rf"^\s*(import|from) {module}\b"
            assert re.search(pattern, code, re.M), f"nothing imports {module}"


def test_states_of_a_package() -> None:
    def need(found: str, fits: bool) -> str:
        return versions.Need("torch", "emu", ">=2.11", "2.13.0", found, fits).state

    assert need("", False) == "missing"
    assert need("2.13.0+cpu", True) == "as pinned"
    assert need("2.12.1", True) == "in range"
    assert need("2.9.0", False) == "wrong"


def test_a_wheel_states_the_same_needs_as_the_checkout(monkeypatch, tmp_path) -> None:
    """The two ways to the metadata (pyproject.toml, installed dist-info) must agree."""
    from_checkout = {(folded(r.name), str(r.specifier)) for _, r in versions.declared()}
    try:
        metadata.metadata("ascendkit")
    except metadata.PackageNotFoundError:
        pytest.skip("ascendkit is not installed in this environment: run `make test`")
    (tmp_path / "configs").mkdir()
    monkeypatch.setattr(versions, "configs", lambda: tmp_path / "configs")
    from_metadata = {(folded(r.name), str(r.specifier)) for _, r in versions.declared()}
    # The group is left out: an extra that repeats a requirement counts under the first one only.
    assert from_metadata == from_checkout
