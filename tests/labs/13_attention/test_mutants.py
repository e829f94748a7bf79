"""Mistakes in lab 13's kernels that must be found: wrong results by the bounds, races and waits by the simulator."""

import functools
import shutil

import pytest

from kernels.attention.sources import SOURCES
from warpcourse.bench import hopper
from warplab import SimulatorError
from warplab.hardware import backend

from .held import check_backward, check_decode, check_forward

pytestmark = pytest.mark.thorough
FULL, CAUSAL = (1, 2, 2, 40, 200, 32, False), (1, 2, 2, 40, 90, 32, True)
MANY = (1, 8, 1, 40, 60, 32, False)  # tiles of queries: one multiprocessor takes them in turn
mma, wgmma = (functools.partial(check_forward, name, kind="float16") for name in ("mma", "wgmma"))
gradients = functools.partial(check_backward, "mma", kind="float16")
gradients_wgmma = functools.partial(check_backward, "wgmma", kind="float16")
FULL_128 = 1, 1, 1, 140, 40, 128, False
decoding = functools.partial(check_decode, kind="float16", splits=2)
# What is changed, into what, the check that must fail, and how: by a wrong result, or by a word of the simulator.
MUTANTS = {
    "sum_not_rescaled": ("3_mma.cu", "top, sum[h] *= less;", "top;", mma, FULL, ""),
    "output_not_rescaled": ("3_mma.cu", "% 2 * 2 + j % 2] *= less;", "% 2 * 2 + j % 2] *= 1;", mma, FULL, ""),
    "own_key_hidden": ("3_mma.cu", "key > row + h * 8", "key >= row + h * 8", mma, CAUSAL, ""),
    "no_wait_for_values": ("3_mma.cu", "__syncthreads();  // the values are here", "//", mma, FULL, "race|copy|copied"),
    "late_tile_skipped": ("3_mma.cu", "+ QUERIES + g.further", "+ g.further", mma, (1, 1, 1, 150, 150, 32, True), ""),
    "second_row_scaled_as_first": ("4_wgmma.cu", "*= less[i / 2 % 2]", "*= less[0]", wgmma, FULL, ""),
    "values_not_waited_for": (
        "4_wgmma.cu",
        "wgmma_wait<0>();\n            settle(result);\n            release(v_empty[step++",
        "release(v_empty[step++",
        wgmma,
        FULL,
        "under way",
    ),
    "values_released_early": (
        "4_wgmma.cu",
        "wgmma_wait<0>();\n            settle(result);\n            release(v_empty[step++ % STAGES]);",
        "release(v_empty[step++ % STAGES]);\n            wgmma_wait<0>();\n            settle(result);",
        wgmma,
        (1, 1, 1, 40, 900, 32, False),
        "after wgmma.wait_group",
    ),
    "scores_from_another_stage": (
        "4_wgmma.cu",
        "k_tiles + step % STAGES * TILE_BYTES",
        "k_tiles",
        wgmma,
        FULL,
        "copied",
    ),
    "queries_overwritten": (
        "4_wgmma.cu",
        "barrier_wait(shared_address(&q_empty[consumer]), turn % 2 ^ 1);",
        "",
        wgmma,
        MANY,
        "under way|race|barrier",
    ),
    "head_skipped": ("4_wgmma.cu", "return work.head < heads", "return work.head < heads - 1", wgmma, MANY, ""),
    "turn_not_passed_on": (
        "4_wgmma.cu",
        "threads_arrive<256>(group % CONSUMERS + 1);",
        "",
        wgmma,
        FULL,
        "barrier|wait",
    ),
    "delta_left_out": ("backward.cu", "(ds[j][i] - of_query[1][of])", "ds[j][i]", gradients, CAUSAL, ""),
    "first_queries_skipped": ("backward.cu", "first_row - g.further)", "first_row)", gradients, CAUSAL, ""),
    "tiles_overwritten": (
        "backward.cu",
        "__syncthreads();  // all have used",
        "//",
        gradients,
        FULL,
        "race|copy|copied",
    ),
    "ds_not_fenced": ("backward_wgmma.cu", "fence_for_tma();", "", gradients_wgmma, FULL_128, "fence"),
    "ds_not_waited_for": (
        "backward_wgmma.cu",
        "threads_sync<CONSUMERS * 128>(1);",
        "",
        gradients_wgmma,
        FULL_128,
        "race|fence",
    ),
    "one_tile_of_ds": ("backward_wgmma.cu", "+ n % 2 * DS_BYTES", "", gradients_wgmma, FULL_128, "race"),
    "dp_not_waited_for": ("backward_wgmma.cu", "wgmma_wait<EARLY>();", "", gradients_wgmma, FULL_128, "under way"),
    "queries_released_early": (
        "backward_wgmma.cu",
        "wgmma_wait<0>();\n        settle(dk);\n        settle(dv);\n        release(q_empty[stage]);",
        "release(q_empty[stage]);\n        wgmma_wait<0>();\n        settle(dk);\n        settle(dv);",
        gradients_wgmma,
        FULL_128,
        "after wgmma.wait_group",
    ),
    "keys_past_the_end": (
        "decode.cu",
        "j % 2 >= end - first)",
        "j % 2 > end - first)",
        decoding,
        (1, 2, 2, 70, 64),
        "",
    ),
    "splits_weighed_alike": (
        "decode.cu",
        "weight = power_of_2(its_top - shift)",
        "weight = 1",
        decoding,
        (1, 2, 2, 70, 64),
        "",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_is_found(name, tmp_path, monkeypatch):
    file, before, after, check, case, word = MUTANTS[name]
    monkeypatch.setattr(hopper, "multiprocessors", lambda: 1)
    check(case=case)
    if backend.name() == "gpu":
        pytest.skip("a GPU may hide a race")
    for path in SOURCES.folder.glob("*.cu*"):
        shutil.copy(path, tmp_path)
    text = SOURCES.text(file)
    assert text.count(before) == 1
    (tmp_path / file).write_text(text.replace(before, after))
    for attribute, value in (("folder", tmp_path), ("_functions", {}), ("_modules", {})):
        monkeypatch.setattr(SOURCES, attribute, value)
    with pytest.raises(SimulatorError if word else AssertionError, match=word or None):
        check(case=case)
