"""The smallest inputs that once went wrong."""

from __future__ import annotations

import numpy as np
import pytest

from ascendkit.emulator.errors import EmulatorError
from tests.emulator.golden import threads
from tests.emulator.golden.families import FAMILIES, bank
from tests.emulator.golden.program import compiled
from tests.emulator.harness import launch

pytestmark = pytest.mark.emu


def test_bfloat16_multiply_add_rounds_once() -> None:
    """The product is a tie; only the addend, far below, says which way it goes."""
    which, case = next(
        (i, c) for i, c in enumerate(FAMILIES["arith"]) if (c.name, c.form) == ("asc_madd", "bf16")
    )
    d, a, b = (np.full((1, 128), code, np.uint16) for code in (0xED9B, 0xC040, 0x4A2B))
    mask = np.ones((1, 256), bool)
    (got,) = bank("arith").run(which, [d, a, b, mask], [None])
    assert got[0, 0] == 0x6E69
    assert (got == case.expect(d, a, b, mask)).all()


def test_lanes_meet_again_after_a_branch() -> None:
    """The mask of active lanes after a branch that voted is that of the whole warp."""
    words = np.array([2, 0] * 48, np.uint32)
    got = threads.run("votes", words, np.zeros(384, np.uint32))[0].reshape(96, 4)
    assert set(got[::2, 2]) == {0x55555555}
    assert set(got[:, 3]) == {0xFFFFFFFF}


_WILD = """#include "tl_templates/ascend/common.h"
__simt_vf__ inline void wild_simt_vf_0(__gm__ uint32_t *p) {
  asc_atomic_add(p, 1u);
}
extern "C" __global__ __vector__ void wild(__gm__ uint32_t* p, int64_t away) {
  asc_init();
  asc_vf_call<wild_simt_vf_0>(cce::dim3(1), p + away);
}
"""


def test_a_fault_inside_an_atomic_leaves_later_ones_working() -> None:
    word = np.zeros(1, np.uint32)
    kernel = compiled(_WILD)
    with pytest.raises(EmulatorError, match="AK-BOUNDS"):
        launch(kernel, [word, 1 << 44])
    launch(kernel, [word, 0])
    assert word[0] == 1


def test_vector_functions_compile_with_instrumentation() -> None:
    """The line that defines a vector function is no statement."""
    text = (
        '#include "tl_templates/ascend/common.h"\n'
        "__simd_vf__ inline void f(__ubuf__ float *p) {\n"
        "  vector_f32 r;\n"
        "  asc_loadalign(r, p, 0);\n"
        "}\n"
        'extern "C" __global__ __vector__ void k(__gm__ float* unused) {\n'
        "  asc_init();\n"
        "  f((__ubuf__ float *)0);\n"
        "}\n"
    )
    launch(compiled(text), [np.zeros(1, np.float32)], trace=1)
