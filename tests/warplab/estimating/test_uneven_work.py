"""Launches whose warps differ in length, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import CudaSource, simulate
from warplab.estimating.uneven_work import dealt, independent, longest_of, stretch
from warplab.estimating.work import Uneven, uneven_of

HALVES = {1.0: 1.0, 3.0: 1.0}  # every second thread goes round three times, the others once
HOW = {"warps": 1, "resident": 1, "sms": 8, "alone": 1000.0, "each": 10.0, "knee": 4.0}


def test_the_longest_of_two_draws() -> None:
    assert longest_of(HALVES, 1) == 2.0
    assert longest_of(HALVES, 2) == pytest.approx(1 * 0.25 + 3 * 0.75)
    assert independent(HALVES, 2.5) == pytest.approx(2.0)
    assert (independent(HALVES, 1.0), independent(HALVES, 9.0)) == (1.0, 32.0)


def test_blocks_are_dealt_to_who_is_free() -> None:
    """Two SMs with room for one block: 4 on the one, 1 + 1 + 1 + 1 on the other."""
    lengths = np.array([[4.0], [1.0], [1.0], [1.0], [1.0]])
    assert dealt(lengths, 2, 1, alone=100.0, each=0.0, knee=4) == pytest.approx(400.0)


def test_a_block_stays_until_its_longest_warp_has_ended() -> None:
    lengths = np.array([[1.0, 5.0], [1.0, 1.0]])
    assert dealt(lengths, 1, 1, alone=100.0, each=0.0, knee=4) == pytest.approx(600.0)


def test_warps_that_share_a_busy_sm_take_turns() -> None:
    """Two warps that need all of the SM: the shorter one ends at 2 x 1 unit, the longer one has it to itself."""
    lengths = np.array([[1.0, 3.0]])
    assert dealt(lengths, 1, 1, alone=1e-6, each=100.0, knee=4) == pytest.approx(200 + 200)


def test_few_uneven_blocks_take_as_long_as_the_longest_and_many_even_out() -> None:
    uneven = Uneven(1.0, HALVES, 2.0, 1.0)
    assert stretch(uneven, blocks=8, **HOW) == pytest.approx(1.5)
    assert 1.0 <= stretch(uneven, blocks=8 * 500, **HOW) < 1.05
    assert stretch(Uneven(0.5, HALVES, 2.0, 1.0), blocks=8, **HOW) == pytest.approx(1.25)


def test_launches_that_are_even_are_not_stretched() -> None:
    assert stretch(None, blocks=8, **HOW) == 1.0
    assert stretch(Uneven(1.0, HALVES, 2.0, 50.0), blocks=8, **HOW) == 1.0  # 50 loops in a row are alike


SOURCE = r"""
extern "C" __global__ void k(const int *n, float *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i;
#pragma unroll 1
    for (int j = 0; j < n[i]; j++) x = x * 0.5f + 1.0f;
    out[i] = x;
}
"""


def _launch(n: np.ndarray):
    return simulate(CudaSource(SOURCE, "k"), n.size // 128, 128, (n.astype(np.int32), np.zeros(n.size, np.float32)))


def test_what_a_launch_says_of_its_threads() -> None:
    n = np.repeat([4, 0, 8, 8], 32 * np.array([4, 4, 4, 4]))
    found = uneven_of(_launch(n))
    assert found is not None
    assert found.trips == {0.0: 128.0, 4.0: 128.0, 8.0: 256.0}
    assert (found.mean, found.entries) == (5.0, 1.0)
    assert 0.2 < found.share < 1.0
    assert uneven_of(_launch(np.full(512, 8))) is None
