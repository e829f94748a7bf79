"""What a launch asks of a card, taken from small launches."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import CudaSource, simulate
from warplab.estimating.work import work_of
from warplab.hardware.cards import card

ROWS = """
extern "C" __global__ void rows(const float *x, float *y, int n) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < n; i++) y[row * n + i] = x[row * n + i];
}
extern "C" __global__ void copy(const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
    y[i] = y[i] + x[n - 1 - i];
}
"""


@pytest.mark.parametrize(
    ("kernel", "lines", "again"),
    [
        ("rows", 64.0, 1.0),  # a row of each lane is read and one is stored
        ("copy", 0.0, 0.0),  # each store fills its sectors
    ],
)
def test_lines_touched_while_stores_fill_a_sector(kernel, lines, again):
    x, y = np.ones(128 * 32, np.float32), np.zeros(128 * 32, np.float32)
    n = 32 if kernel == "rows" else x.size
    launch = simulate(CudaSource(ROWS, kernel), 1 if kernel == "rows" else 32, 128, (x, y, np.int32(n)), races=False)
    reuse = work_of(launch, card("H100")).reuse
    assert (reuse["store_span"], reuse["store_again"]) == (lines, again)
