"""Host arrays on the device: copied there and back, freed, named."""

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource, source_of
from warplab.launch.simulate import prepare, simulate

MULTIPLY = """extern "C" __global__ void multiply(const float* a, const float* __restrict__ b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * b[i];
}
"""


def multiply_function(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] * b[i]


def vectors(n=100):
    rng = np.random.default_rng(n)
    return rng.random(n, np.float32), rng.random(n, np.float32), np.full(n, np.nan, np.float32)


def test_host_arrays_leave_no_memory_behind_even_after_an_error():
    device = simulator.Device(1 << 28)
    a, b, c = vectors()
    simulate(multiply_function, 4, 32, (a, b, c), device=device)
    with pytest.raises(simulator.IllegalAddress):
        simulate(CudaSource(MULTIPLY, "multiply"), 4, 32, (a, b, c, np.int32(101)), device=device)
    assert device.memory.used_bytes == 0


def test_arrays_of_another_device_are_copied_there_and_back():
    device = simulator.Device(1 << 28)
    a, b, _ = vectors()
    c = cuda.device_array(100, np.float32)
    simulate(multiply_function, 4, 32, (cp.asarray(a), cuda.to_device(b), c), device=device)
    np.testing.assert_array_equal(c.copy_to_host(), a * b)
    assert device.memory.used_bytes == 0


def test_the_same_array_twice_is_one_array():
    x = np.arange(10, dtype=np.float32)
    simulate(multiply_function, 1, 32, (x, x, x))
    np.testing.assert_array_equal(x, np.arange(10, dtype=np.float32) ** 2)


def test_arrays_bear_the_kernel_s_names():
    a, b, c = vectors()
    with prepare(CudaSource(MULTIPLY, "multiply"), (a, b, c, np.int32(100)), simulator.default_device()) as launch:
        assert list(launch.array_names.values()) == ["a", "b", "c"]
        assert [simulator.default_device().memory.find(x).name for x in launch.array_names] == ["a", "b", "c"]
        assert [len(p) for p in launch.bound.params] == [8, 8, 8, 4]
    with prepare(source_of(multiply_function), (a, a, c), simulator.default_device()) as launch:
        assert list(launch.array_names.values()) == ["a, b", "c"]


def test_views_with_gaps_and_negative_strides_keep_what_lies_between():
    def negate(x):
        i = cuda.grid(1)
        if i < x.shape[0]:
            x[i] = -x[i]

    whole = np.arange(1, 21, dtype=np.float64)
    simulate(negate, 1, 32, (whole[::-3],))
    expected = np.arange(1, 21, dtype=np.float64)
    expected[::-3] *= -1
    np.testing.assert_array_equal(whole, expected)


def test_empty_arrays_are_no_error():
    a = np.empty(0, np.float32)
    simulate(multiply_function, 1, 32, (a, a, a))
