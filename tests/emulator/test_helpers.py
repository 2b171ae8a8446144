"""Helpers' instructions where they cannot be had: an error that names them."""

from __future__ import annotations

import numpy as np
import pytest

from ascendkit.emulator.errors import EmulatorError, SourceError
from tests.emulator.golden import helpers
from tests.emulator.golden.program import compiled
from tests.emulator.harness import launch

pytestmark = pytest.mark.emu
DATA, OUT = np.ones(512, np.uint8), np.zeros(256, np.uint8)
VECTOR = 'extern "C" __global__ __vector__ void f(__gm__ uint32_t* x) {'
SHARED = "  auto p = (volatile __ssbuf__ uint32_t *)AscendC::GetSsbufBaseAddr();\n"


def kernel(body: str, head: str = VECTOR) -> str:
    return f'#include "tl_templates/ascend/common.h"\n{head}\n  asc_init();\n{body}}}\n'


def test_the_count_is_unknown_after_a_plain_squeeze():
    with pytest.raises(EmulatorError, match=r"AK-SQUEEZE-001.*sprsts") as error:
        helpers.run(DATA, OUT, (1, 0, 1, 2))
    assert "sprsts(SPR_AR" in error.value.text


def test_the_count_is_unknown_without_an_init():
    body = "  asc_store_dev((__gm__ uint64_t *)x, asc_get_squeeze_status());\n"
    with pytest.raises(EmulatorError, match=r"AK-SQUEEZE-001.*asc_get_squeeze_status"):
        launch(compiled(kernel(body)), [np.zeros(2, np.uint32)])


@pytest.mark.parametrize("loops, name", [((2, 1), "gm2ub"), ((1, 3), "ub2gm")])
def test_copies_in_loops_are_named(loops, name):
    with pytest.raises(EmulatorError, match=f"asc_set_{name}_loop_size.*not emulated"):
        helpers.run(DATA, OUT, (0,), loops)


def test_a_squeezing_store_past_the_buffer_is_an_error():
    with pytest.raises(EmulatorError, match="asc_squeeze_and_storeunalign"):
        helpers.run(DATA, OUT, (1, (192 << 10) - 16, 1, 1))


def test_shared_words_need_both_kinds_of_cores():
    with pytest.raises(EmulatorError, match=r"AK-CORE-003.*GetSsbufBaseAddr"):
        launch(compiled(kernel(SHARED + "  p[0] = 1;\n")), [np.zeros(1, np.uint32)])


def test_shared_words_are_undefined_at_first_and_end_after_3_kib():
    head = VECTOR.replace("__vector__", "__mix__(1, 2)").replace("x)", "x, int32_t at)")
    body = SHARED + "  if (ASC_IS_AIC) {\n    asc_store_dev(x, (uint32_t)p[at]);\n  }\n"
    word = np.zeros(1, np.uint32)
    launch(compiled(kernel(body, head)), [word, 767])
    assert word[0] == 0xFFFFFFFF
    with pytest.raises(EmulatorError, match="outside the SS buffer: offset 3072"):
        launch(compiled(kernel(body, head)), [word, 768])


@pytest.mark.parametrize(
    "room, count, text", [(511, 0, "work space"), (4096, 9, "a tensor holds 8")]
)
def test_a_sort_that_does_not_fit_is_an_error(room, count, text):
    with pytest.raises(EmulatorError, match=f"AscendC::Sort of {count}.*{text}"):
        helpers.run(np.zeros(8, np.int32), OUT, (5, 32, 8, room, count))


def test_a_sort_that_no_source_shows_does_not_compile():
    text = helpers.TEXT.replace("Sort<int32_t, true,", "Sort<int32_t, false,")
    with pytest.raises(SourceError, match="known as Sort<int32_t, true"):
        compiled(text).compile()


def test_other_names_of_the_class_library_are_named():
    with pytest.raises(SourceError, match="AscendC::DataCopy of CANN"):
        compiled(kernel("  AscendC::DataCopy(x, x, 8);\n"))


def test_a_vector_function_cannot_ask_for_the_count():
    function = (
        "__simd_vf__ inline void g(__ubuf__ uint32_t *p) {\n"
        "  asc_squeeze_and_storeunalign_init();\n"
        "  p[0] = (uint32_t)asc_get_squeeze_status();\n"
        "}\n"
    )
    text = kernel("  g((__ubuf__ uint32_t *)0);\n  asc_sync();\n", function + VECTOR)
    with pytest.raises(EmulatorError, match=r"AK-CORE-002.*asc_get_squeeze_status"):
        launch(compiled(text), [np.zeros(1, np.uint32)])


def test_shared_words_are_data_that_control_flow_alone_has_not():
    head = VECTOR.replace("__vector__", "__mix__(1, 2)")
    text = kernel(SHARED + "  if (p[0] > 0) {\n    asc_sync();\n  }\n", head)
    with pytest.raises(EmulatorError, match="AK-CONTROL-001"):
        launch(compiled(text), [np.zeros(1, np.uint32)], control=True)
