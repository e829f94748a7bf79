"""Grids and blocks."""

import numpy as np
import pytest

from warplab.dropin import numba_cuda as cuda
from warplab.launch.dimensions import dimensions
from warplab.launch.errors import ArgumentError
from warplab.launch.simulate import simulate


def multiply_function(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] * b[i]


def vectors(n=100):
    rng = np.random.default_rng(n)
    return rng.random(n, np.float32), rng.random(n, np.float32), np.full(n, np.nan, np.float32)


A, B, C = vectors()


@pytest.mark.parametrize("value", [(1, 2, 3, 4), (), "12"])
def test_grids_that_are_none(value):
    with pytest.raises((ValueError, TypeError), match="grid must be"):
        dimensions(value, "grid")


def test_a_grid_of_floats_is_told_of_integer_division():
    with pytest.raises(ArgumentError, match=r"\(n \+ block - 1\) // block"):
        simulate(multiply_function, 100 / 32, 32, (A, B, C))
