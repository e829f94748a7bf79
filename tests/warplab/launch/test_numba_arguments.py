"""Arguments of Numba kernels: their types and bytes; wrong ones are refused by name."""

import numpy as np
import pytest

from warplab.dropin import numba_cuda as cuda
from warplab.launch.errors import ArgumentError
from warplab.launch.simulate import simulate


def multiply_function(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] * b[i]


def vectors(n=100):
    rng = np.random.default_rng(n)
    return rng.random(n, np.float32), rng.random(n, np.float32), np.full(n, np.nan, np.float32)


@pytest.mark.parametrize("order", ["C", "F"])
def test_layouts_of_arrays(order):
    def copy(x, y):
        i, j = cuda.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            y[i, j] = x[i, j] + x.strides[0] * 0 + x.itemsize * 0

    x = np.asarray(np.arange(35, dtype=np.int16).reshape(5, 7), order=order)
    y = np.zeros((5, 7), np.int16, order)
    simulate(copy, (1, 1), (8, 8), (x, y))
    np.testing.assert_array_equal(y, x)


def test_numba_arguments_of_every_supported_type():
    def gather(t, f, z, flag, small, half, out):
        out[0] = t[0]
        out[1] = t[1]
        out[2] = f
        out[3] = z.real
        out[4] = z.imag
        out[5] = 1 if flag else 0
        out[6] = small
        out[7] = half

    out = np.zeros(8)
    arguments = ((3, 4.5), np.float32(0.25), 1 - 2j, True, np.int8(-7), np.float16(1.5), out)
    simulate(gather, 1, 1, arguments)
    np.testing.assert_array_equal(out, [3, 4.5, 0.25, 1, -2, 1, -7, 1.5])


def test_arrays_of_records():
    def fill(points):
        i = cuda.grid(1)
        if i < points.size:
            points[i].x = i * 0.5
            points[i].n = i

    points = np.zeros(5, [("x", np.float32), ("n", np.int32)])
    simulate(fill, 1, 32, (points,))
    assert points.tolist() == [(0, 0), (0.5, 1), (1, 2), (1.5, 3), (2, 4)]


A, B, C = vectors()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A, B), r"kernel multiply_function\(a, b, c\) takes 3 arguments, 2 were given"),
        ((A, B, C, 1), r"takes 3 arguments, 4 were given"),
        ((A, [1, 2], C), r"argument 2 of kernel multiply_function, `b`, is a list"),
        ((A, B, None), r"argument 3 of kernel multiply_function, `c`, is None"),
        ((A, B, {}), r"`c`, is a dict"),
    ],
)
def test_wrong_arguments_of_a_numba_kernel_are_named(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        simulate(multiply_function, 4, 32, arguments)
