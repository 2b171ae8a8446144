"""The model of the Ascend program's time: its arithmetic, its bytes, and what the records say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ascendkit import platform as platforms
from topk.radix_select import modelled

RESULTS = Path(__file__).resolve().parents[2] / "results" / "topk_ascend_modelled.jsonl"
emulated = platforms.available("emulator")


class Row:
    """A record with the fields the model reads."""

    def __init__(self, name: str, pipe: str, *arguments: int, bytes: int = 0) -> None:
        from ascendkit.emulator.records import Access

        self.name, self.pipe, self.arguments = name, pipe, arguments
        self.accesses = (Access("GM", False, 0, 1, 0, bytes, 0),) if bytes else ()


def flag(kind: str, source: str, target: str, event: int = 0) -> Row:
    from ascendkit.emulator.records import PIPES

    if kind == "notify":
        return Row("asc_sync_notify", source, PIPES.index(target), event)
    return Row("asc_sync_wait", target, PIPES.index(source), event)


def load(count: int = 5000) -> Row:
    return Row("asc_copy_gm2ub_align", "MTE2", bytes=count)


def add() -> Row:
    return Row("asc_add", "V")


def test_pipes_run_side_by_side_and_flags_order_them() -> None:
    one = modelled.MODEL["register_cycles"]
    assert modelled.cycles([load(), add()])[0] == pytest.approx(5000 / 50 + 90)
    waits = [load(), flag("notify", "MTE2", "V"), flag("wait", "MTE2", "V"), add()]
    assert modelled.cycles(waits)[0] == pytest.approx(5000 / 50 + 90 + one)
    # A second load starts when the first has left the pipe, not when its data has arrived.
    assert modelled.cycles([load(), load()])[0] == pytest.approx(2 * 5000 / 50 + 90)
    # The scalar core waits for V: what it issues afterwards starts later.
    stalls = [add(), flag("notify", "V", "S"), flag("wait", "V", "S"), load()]
    total, busy = modelled.cycles(stalls)
    assert total == pytest.approx(one + 5000 / 50 + 90)
    assert busy == {"V": pytest.approx(one), "MTE2": pytest.approx(100)}


def test_what_has_no_model_is_refused() -> None:
    with pytest.raises(ValueError, match="no model of asc_mmad on pipe M"):
        modelled.cycles([Row("asc_mmad", "M")])


@pytest.mark.emu
@pytest.mark.skipif(not emulated, reason=str(emulated.reason))
@pytest.mark.xdist_group("topk_emulator")
@pytest.mark.parametrize("row_len", (3000, 20_000))
def test_every_byte_of_a_row_is_copied_once(row_len: int) -> None:
    (records,) = modelled.traced(row_len, 64, seed=3, rows=1)
    copied = {"asc_copy_gm2ub_align": 0, "asc_copy_ub2gm_align": 0}
    for r in records:
        if r.name in copied:
            copied[r.name] += sum(a.rows * a.row_bytes for a in r.accesses if a.space == "GM")
    pages = -(-row_len // 8192)
    order = 4 << max(pages - 1, 0).bit_length()
    assert copied["asc_copy_gm2ub_align"] == 2 * row_len + 32 + order
    assert copied["asc_copy_ub2gm_align"] == 2 * 4 * 64
    total, busy = modelled.cycles(records)
    assert total >= max(busy.values()) > 0


def test_the_records_are_modelled_and_say_so() -> None:
    records = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    shapes = [(r["row_len"], r["topk"]) for r in records]
    assert shapes == [(n, k) for n in modelled.LENGTHS for k in modelled.TOPKS]
    for r in records:
        assert r["record"] == "topk_modelled" and r["origin"] == "modelled"
        assert 0 < r["share_of_gm"] <= 1
        assert r["us"] >= r["rows"] * r["row_bytes"] / (r["gm_tb_per_s"] * 1e12) * 1e6 * 0.999
        assert r["model"] == {k: round(v, 4) for k, v in modelled.MODEL.items()}
