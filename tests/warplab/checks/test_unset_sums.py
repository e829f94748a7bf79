"""Sums in a `cuda.local.array` that nothing set to zero: refused, though the compiler happens to start them at 0."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float32

from tests.support.kernel_checks import failure
from warplab import checks, cuda

PAIRS = checks.elementwise(np.add, ("x", "y"), "out")
SIZES = {"sizes": [33], "launches": [(2, 32)]}


@cuda.jit
def never_set(x, y, out):
    i = cuda.grid(1)
    sums = cuda.local.array(2, float32)
    if i < out.size:
        for k in range(2):
            sums[k] += x[i] if k == 0 else y[i]
        out[i] = sums[0] + sums[1]


@cuda.jit
def set_by_a_loop(x, y, out):
    i = cuda.grid(1)
    sums = cuda.local.array(2, float32)
    for k in range(2):
        sums[k] = 0
    if i < out.size:
        sums[0] += x[i]
        sums[1] += y[i]
        out[i] = sums[0] + sums[1]


@cuda.jit(device=True)
def clear(values):
    for k in range(2):
        values[k] = 0


@cuda.jit
def set_by_a_function(x, y, out):
    i = cuda.grid(1)
    sums = cuda.local.array(2, float32)
    clear(sums)
    if i < out.size:
        sums[0] += x[i]
        sums[1] += y[i]
        out[i] = sums[0] + sums[1]


@cuda.jit
def set_under_another_name(x, y, out):
    i = cuda.grid(1)
    sums = cuda.local.array(2, float32)
    other = sums
    other[0] = other[1] = 0
    if i < out.size:
        sums[0] += x[i]
        sums[1] += y[i]
        out[i] = sums[0] + sums[1]


def test_never_set():
    error = failure(never_set, PAIRS, **SIZES)
    assert "never_set adds to elements that were never set." in str(error)
    assert "Nothing promises that sums starts at zero: set each element before, sums[i] = 0." in str(error)
    assert error.look_at.endswith("sums[k] += x[i] if k == 0 else y[i]")
    assert error.kind == "uninitialized"


@pytest.mark.parametrize("kernel", [set_by_a_loop, set_by_a_function, set_under_another_name])
def test_set_in_some_way(kernel):
    checks.kernel(kernel, PAIRS, **SIZES)
