"""`cuda.In`, `cuda.Out` and `cuda.InOut`."""

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import numba_cuda as cuda


@cuda.jit
def add_row_number(x, out):
    j, i = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = x[i, j] + 100 * i


@cuda.jit
def use_all(a, b, c):
    i = cuda.grid(1)
    b[i] = a[i] + c[i]
    a[i] = 0
    c[i] = 7


def test_in_out_and_inout_copy_one_way_or_both():
    a, b, c = np.arange(32.0), np.full(32, np.nan), np.ones(32)
    use_all[1, 32](cuda.In(a), cuda.Out(b), cuda.InOut(c))
    np.testing.assert_array_equal(a, np.arange(32))
    np.testing.assert_array_equal(b, a + 1)
    np.testing.assert_array_equal(c, 7)
    device = cuda.to_device(a)  # which stays where it is, whatever the hint
    use_all[1, 32](cuda.In(device), cuda.Out(b), cuda.In(c))
    np.testing.assert_array_equal(device.copy_to_host(), 0)
    np.testing.assert_array_equal(b, a + 7)


def test_what_an_out_argument_held_is_not_copied_to_the_device():
    with pytest.raises(simulator.UninitializedRead, match="`a`"):
        use_all[1, 32](cuda.Out(np.ones(32)), np.ones(32), np.ones(32))


def test_hints_keep_the_order_of_axes():
    a, out = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)), np.zeros((2, 3), np.int32, order="F")
    add_row_number[1, (8, 8)](cuda.In(a[::-1]), cuda.Out(out))
    np.testing.assert_array_equal(out, [[3, 4, 5], [100, 101, 102]])
