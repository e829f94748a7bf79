"""`cuda.reduce` against NumPy."""

import functools

import numpy as np
import pytest

from warplab.dropin import numba_cuda as cuda
from warplab.report.profile import profile

SIZES = (1, 2, 31, 32, 33, 127, 128, 129, 255, 1000, 8192, 8193, 10007)


@cuda.reduce
def add(a, b):
    return a + b


@cuda.Reduce
def larger(a, b):
    return a if a > b else b


@pytest.mark.parametrize("size", SIZES)
def test_reductions(size):
    values = np.random.default_rng(size).permutation(size).astype(np.int64) - size // 2
    device = cuda.to_device(values)
    assert add(values) == add(device) == values.sum()
    assert add(device, init=7) == values.sum() + 7
    assert larger(device, init=-(10**6)) == values.max()
    assert larger(device, init=10**6) == 10**6
    np.testing.assert_array_equal(device.copy_to_host(), values)


def test_a_reduction_of_the_first_elements_into_an_array():
    values = cuda.to_device(np.arange(1000, dtype=np.int64))
    result = cuda.device_array(2, np.int64)
    assert add(values, size=300, res=result, init=1, stream=cuda.stream()) is None
    assert result[0] == 300 * 299 // 2 + 1
    assert add(values[:0], init=5) == 5
    with pytest.raises(TypeError, match="1D"):
        add(np.ones((2, 2)))


def test_sums_of_floats_are_taken_in_the_order_of_the_gpu():
    values = np.random.default_rng(1).random(5000, np.float32)
    # Block k of 39 takes chunks k, k + 39, ...; here one each. In a warp of 32, lane i takes lane i + 16, i + 8, ...
    whole, rest = values[: 39 * 128].reshape(39, 4, 32), values[39 * 128 :]
    lanes = whole.copy()
    for width in (16, 8, 4, 2, 1):
        lanes = lanes[..., :width] + lanes[..., width : 2 * width]
    warps = lanes[..., 0]
    partials = (warps[:, 0] + warps[:, 2]) + (warps[:, 1] + warps[:, 3])
    partials[0] += np.float32(0.25)

    def one_after_another(numbers):
        return functools.reduce(np.add, numbers)

    assert rest.size == 8
    partials = np.append(partials, one_after_another(rest))
    first = partials[:32]
    for width in (16, 8, 4, 2, 1):
        first = first[:width] + first[width : 2 * width]
    assert cuda.reduce(lambda a, b: a + b)(values, init=0.25) == first[0] + one_after_another(partials[32:])


def test_a_profile_shows_the_launches_of_a_reduction():
    with profile() as p:
        add(np.ones(1000, np.int64))
    assert p.kernels == ["gpu_reduce_block_strided"]
    assert [launch.grid[0] for launch in p] == [7, 1, 1]
