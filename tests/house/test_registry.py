"""The registry is a scan: folders are the truth, and an unknown name leads to the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendkit import registry
from ascendkit.data import configs
from ascendkit.doctor import status
from ascendkit.doctor.features import STATES, features
from ascendkit.registry import Component, components, ops
from tests.house.helpers import python


@pytest.fixture
def scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A registry over a made-up tree: ``scan({"kit/op": ["cost"]})``."""

    def build(tree: dict[str, list[str]]):
        for folder, stems in tree.items():
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder.split("/")[0] / "component.yaml").write_text("title: x\n")
            for stem in stems:
                (tmp_path / folder / f"{stem}.py").write_text("")
        monkeypatch.setattr(registry, "__file__", str(tmp_path / "ascendkit" / "registry.py"))
        registry.components.cache_clear()
        registry.ops.cache_clear()
        return registry

    yield build
    monkeypatch.undo()
    registry.components.cache_clear()
    registry.ops.cache_clear()


def test_names_are_unique_and_are_the_folders() -> None:
    for name, op in ops().items():
        assert op.name == name
        assert op.folder == components()[op.component].folder.joinpath(*name.split(".")[1:])
    assert len({op.folder for op in ops().values()}) == len(ops())


def test_states_follow_from_files_alone() -> None:
    file_of = {"costed": "cost", "referenced": "reference", "judged": "oracle"}
    for op in ops().values():
        on_disk = {p.stem for p in op.folder.glob("*.py")}
        assert op.files == on_disk, op.name
        for state in ("costed", "referenced", "judged", "ascend", "cuda"):
            assert (state in op.states()) == (file_of.get(state, state) in on_disk), op.name


def test_a_new_folder_is_a_new_op(scan) -> None:
    found = scan(
        {
            "kit/a": ["__init__", "cost"],
            "kit/deep/b": ["reference", "cuda"],
            "kit/not_an_op": ["helpers"],
            "kit/.hidden/c": ["cost"],
            "kit/__pycache__/d": ["cost"],
        }
    )
    assert list(found.ops()) == ["kit.a", "kit.deep.b"]
    assert found.op("b").states() == ("referenced", "cuda")
    assert found.op("a").platforms() == ()


def test_a_folder_without_marker_is_no_component(scan, tmp_path: Path) -> None:
    (tmp_path / "tests" / "a").mkdir(parents=True)
    (tmp_path / "tests" / "a" / "cost.py").write_text("")
    assert list(scan({"kit/a": ["cost"]}).components()) == ["kit"]


def test_an_ambiguous_short_name_lists_both(scan) -> None:
    found = scan({"kit/a": ["cost"], "lib/a": ["cost"], "lib/bee": ["cost"]})
    with pytest.raises(ValueError, match=r"wanted one of kit\.a, lib\.a"):
        found.op("a")
    assert found.op("bee").name == "lib.bee"


@pytest.mark.parametrize("typo", ["lib.bea", "bea", "LIB.BEE", "", "lib", "lib.bee.cost"])
def test_an_unknown_op_names_the_nearest(scan, typo: str) -> None:
    found = scan({"kit/a": ["cost"], "lib/bee": ["cost"]})
    with pytest.raises(ValueError, match=r"op: got .*, wanted one of kit\.a, lib\.bee") as caught:
        found.op(typo)
    if typo:
        assert str(caught.value).endswith("nearest: lib.bee")


def test_listing_ops_imports_no_component() -> None:
    code = "import sys, ascendkit; print([n for n in ascendkit.ops() if n in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


def test_every_component_states_its_twins_and_features() -> None:
    for component in components().values():
        facts = component.facts
        for side in ("nvidia", "ascend"):
            assert set(facts[side]) == {"name", "version", "url"}, component.name
            assert facts[side]["url"].startswith("https://github.com/"), component.name
        got = features(component)
        assert got, component.name
        assert len({f.name for f in got}) == len(got), component.name
        assert {f.checked for f in got} == set(facts["checks"].values()), "a check nobody uses"


@pytest.mark.parametrize(
    "line, message",
    [
        ("{name: a, nvidia: relesed, ascend: none, checked: c}", "nearest: released"),
        ("{name: a, nvidia: main, ascend: none, checked: d}", "got 'd', wanted one of"),
        ("{name: a, nvidia: main, ascend: none}", "also checked"),
        ("{name: a, nvidia: main, ascend: none, checked: c, nots: x}", "nearest: note"),
    ],
)
def test_a_malformed_feature_is_refused(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "component.yaml").write_text(f"checks: {{c: seen}}\nfeatures: [{line}]\n")
    with pytest.raises(ValueError, match=message):
        features(Component("kit", tmp_path))


def test_status_shows_every_op_and_only_known_states() -> None:
    tables = {t.title: t for t in status.tables()}
    assert [row[0] for row in tables["Ops"].rows] == [
        op.name for c in components().values() for op in c.ops
    ]
    for name in components():
        for row in tables[f"Upstream of {name}"].rows:
            assert row[1] in STATES and row[2] in STATES
    assert (configs() / "status.yaml").is_file()
