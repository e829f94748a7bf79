"""Python exceptions of kernels, with debug=True and without."""

import numpy as np
import pytest

from warplab.dropin import numba_cuda as cuda


@cuda.jit(debug=True, opt=False)
def checked(x, out):
    i = cuda.grid(1)
    if i < x.size:
        if x[i] == 7:
            raise IndexError("seven")
        if x[i] == 5:
            raise AssertionError  # as `assert` does, which pytest rewrites
        out[i] = 10 // x[i]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (7, IndexError, r"line \d+, tid=\[0, 0, 8\] ctaid=\[0, 0, 1\]: seven"),
        (5, AssertionError, r"line \d+, tid=\[0, 0, 8\] ctaid=\[0, 0, 1\]$"),
        (0, ZeroDivisionError, r"tid=\[0, 0, 8\] ctaid=\[0, 0, 1\]: integer division by zero"),
    ],
)
def test_a_debug_kernel_raises(value, error, message):
    x, out = np.ones(64, np.int32), np.zeros(64, np.int32)
    x[40] = value
    for _ in range(2):
        with pytest.raises(error, match=message):
            checked[2, 32](x, out)
    x[40] = 2
    checked[2, 32](x, out)
    assert out[40] == 5


def test_without_debug_a_thread_that_raises_ends():
    kernel = cuda.jit(checked.py_func)
    x, out = np.ones(64, np.int32), np.zeros(64, np.int32)
    x[40] = 7
    kernel[2, 32](x, out)
    assert out.tolist() == [10] * 40 + [0] + [10] * 23
