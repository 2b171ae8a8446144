"""Every number in the data tables says where it comes from, and that source exists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ascendkit.data import configs, load_yaml, table

LEAF_KEYS = {"value", "source", "conflict", "note", "unit"}
SOURCE_KEYS = {"ref", "kind"}
STEMS = sorted(p.stem for p in (configs() / "data").glob("*.yaml"))
BODIES = {"models": "models", "hardware": "devices", "socs": "archs"}
"""Tables of sourced leaves, and the key below which nothing but leaves may stand."""


def leaves(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(node, dict) and "value" not in node:
        for key, below in node.items():
            yield from leaves(below, (*path, str(key)))
    else:
        yield path, node


@pytest.mark.parametrize("stem", sorted(BODIES))
def test_every_leaf_has_a_source_that_exists(stem: str) -> None:
    got = table(stem)
    found = list(leaves(got[BODIES[stem]], (stem,)))
    assert found
    for path, leaf in found:
        where = ".".join(path)
        assert isinstance(leaf, dict), f"{where}: a bare {leaf!r}, wanted value and source"
        assert {"value", "source"} <= set(leaf) <= LEAF_KEYS, f"{where}: {sorted(leaf)}"
        assert leaf["source"] in got["sources"], f"{where}: no source {leaf['source']!r}"


@pytest.mark.parametrize("stem", STEMS)
def test_sources_say_what_they_are(stem: str) -> None:
    got = load_yaml(configs() / "data" / f"{stem}.yaml")
    for key, source in got.get("sources", {}).items():
        assert set(source) == SOURCE_KEYS and all(source.values()), f"{stem}.sources.{key}"


def test_points_and_their_metrics_have_sources() -> None:
    got = table("validation_points")
    ids = [p["id"] for p in got["points"]]
    assert len(ids) == len(set(ids))
    for point in got["points"]:
        assert point["role"] in got["roles"], point["id"]
        assert point["config"].get("source", "derived") in got["sources"], point["id"]
        for name, metric in point["metrics"].items():
            where = f"{point['id']}.{name}"
            assert "value" in metric, where
            assert metric.get("source") in got["sources"], f"{where}: {metric.get('source')!r}"


def test_kernel_rows_have_sources_and_known_trust() -> None:
    rows = table("kernels_950")["rows"]
    levels = table("kernels_950")["trust_levels"]
    ids = [r["id"] for r in rows]
    assert len(ids) == len(set(ids)) and rows
    for row in rows:
        assert str(row["source"]).strip(), row["id"]
        assert row["trust"] in levels, f"{row['id']}: {row['trust']!r}"
    hardware = table("hardware")
    for row in hardware["kernels"]:
        assert row["source"] in hardware["sources"], row["id"]
        assert row["platform"] in hardware["devices"], row["id"]


def test_runs_are_of_points_that_exist() -> None:
    runs = table("validation_runs")
    ids = {p["id"] for p in table("validation_points")["points"]}
    assert set(runs["runs"]) <= ids
    for key, run in runs["runs"].items():
        assert run["group"] and ("not" in run) != ("set" in run or "kernel" in run), key
    for prefix in (*runs["moe_kernels"], *runs["gemm_kernels"]):
        assert any(i.startswith(prefix) for i in ids), prefix


def test_a_bare_number_is_caught(tmp_path: Path) -> None:
    found = dict(leaves({"h200": {"hbm_tbs": 4.8, "l2_mb": {"value": 60, "source": "x"}}}, ()))
    assert found[("h200", "hbm_tbs")] == 4.8
    assert found[("h200", "l2_mb")] == {"value": 60, "source": "x"}


def test_every_table_is_one_this_file_judges() -> None:
    judged = {*BODIES, "validation_points", "validation_runs", "kernels_950"}
    assert set(STEMS) == {*judged, "aliases"}, "a new table needs a rule here"


def test_aliases_name_keys_that_exist_and_none_twice() -> None:
    groups = load_yaml(configs() / "data" / "aliases.yaml")
    assert set(groups["models"]) <= set(table("models")["models"])
    assert set(groups["devices"]) <= set(table("hardware")["devices"])
    for group in groups.values():
        names = [str(n).lower() for key, others in group.items() for n in (key, *others)]
        assert len(names) == len(set(names))


def test_a_floor_of_a_kernel_table_has_a_source() -> None:
    floored = [
        t
        for t in map(load_yaml, (configs() / "data" / "kernels").glob("*.yaml"))
        if "floor_us" in t
    ]
    assert floored
    for kernels in floored:
        assert kernels["sources"][kernels["floor_source"]]["ref"]
