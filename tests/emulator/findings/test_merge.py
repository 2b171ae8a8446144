"""One mistake is one finding, however often the loop around it was written out."""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("tilelang")

from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S

from ascendkit.emulator import check
from ascendkit.emulator.findings.finding import Finding, Point
from ascendkit.emulator.findings.merge import merged
from ascendkit.emulator.lowered import LoweredKernel, ascend_target
from ascendkit.emulator.mutants import Mutant

pytestmark = pytest.mark.emu


def written_out(rows):
    """y = 2 x; the rows of a tile one after another in the text."""

    @T.prim_func
    def main(x: T.Tensor((rows, 128), "float32"), y: T.Tensor((rows, 128), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((rows, 128), "float32")
            T.copy(x, tile)
            with T.SimdVF():
                for i in list(range(rows)):
                    value = S.vld(tile[i, 0])
                    S.vsts(tile[i, 0], S.vadd(value, value))
            T.copy(tile, y)

    return main


def test_a_loop_written_out_is_one_finding():
    with ascend_target():
        kernel = LoweredKernel(written_out(4))
    text = kernel.kernel_source
    lines = text.splitlines()
    loads = [i for i, row in enumerate(lines, 1) if "vlds_norm" in row]
    assert len(loads) == 4  # or there is nothing to merge
    wait = next(i for i, row in enumerate(lines, 1) if "asc_sync_wait(PIPE_MTE2, PIPE_V" in row)
    drop = [Mutant(wait, "asc_sync_wait", "drop", "MTE2", "V")]
    x = torch.ones(4, 128)
    results = [check(kernel, x, torch.zeros(4, 128), mutate=drop) for _ in range(2)]
    (race,) = [f for f in results[0].findings if f.code == "AK-RACE-001" and f.here.pipe == "V"]
    assert race.count == 4 and race.here.line == loads[0]
    assert [end - begin for begin, end in race.ranges] == [256] * 4
    assert (race.begin, race.end) == (race.ranges[0][0], race.ranges[-1][1])
    told = [json.dumps(r.to_json()) for r in results]
    assert told[0] == told[1] and '"count": 4' in told[0]


def test_what_differs_in_one_respect_stays_two():
    here, there = Point(3, pipe="V", access="read"), Point(9, pipe="MTE2", access="write")
    one = Finding("AK-RACE-001", "error", "", here=here, other=there, space="UB", begin=0, end=4)
    same = Finding("AK-RACE-001", "error", "", here=here, other=there, space="UB", begin=4, end=8)
    (joined,) = merged([one, same])
    assert (joined.count, joined.begin, joined.end, joined.ranges) == (2, 0, 8, ())
    for field, value in {
        "code": "AK-RACE-002",
        "buffer": "tile",
        "space": "L1",
        "here": Point(4, pipe="V", access="read"),
        "other": Point(9, pipe="MTE3", access="write"),
    }.items():
        assert len(merged([one, Finding(**{**one.__dict__, field: value})])) == 2
