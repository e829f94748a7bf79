"""Any kernel with its arguments becomes a launch."""

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from numba import cuda as numba_cuda

from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

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


class GpuKernel:
    """What `warplab.launch.on_gpu` makes of a RawKernel: an object that holds its source."""

    _warplab_source = CudaSource(MULTIPLY, "multiply")


KERNELS = {
    "drop-in of Numba": (lambda: cuda.jit(multiply_function), ()),
    "Numba's own dispatcher": (lambda: numba_cuda.jit(multiply_function), ()),
    "a Python function": (lambda: multiply_function, ()),
    "drop-in of CuPy": (lambda: cp.RawKernel(MULTIPLY, "multiply"), (np.int32(100),)),
    "CudaSource": (lambda: CudaSource(MULTIPLY, "multiply"), (np.int32(100),)),
    "an object with a source": (GpuKernel, (np.int32(100),)),
}


@pytest.mark.parametrize("what", KERNELS)
def test_every_kind_of_kernel_runs_on_numpy_arrays_in_place(what):
    make, more = KERNELS[what]
    a, b, c = vectors()
    profile = simulate(make(), 4, 32, (a, b, c, *more))
    np.testing.assert_array_equal(c, a * b)
    assert profile.grid == (4, 1, 1)
    assert profile.block == (32, 1, 1)
    assert profile.counts.global_load_requests == 8
    assert profile.kernel.startswith("multiply")


def test_shared_bytes_and_options_reach_the_simulator():
    code = (
        'extern "C" __global__ void f(int* x) { extern __shared__ int s[]; s[threadIdx.x] = 3; x[0] = s[threadIdx.x]; }'
    )
    source = CudaSource(code, "f")
    x = np.zeros(4, np.int32)
    assert simulate(source, 1, 4, (x,), shared_bytes=16).static["shared_bytes"] == 16
    assert simulate(source, 1, 4, (x,), shared_bytes=16, counters=False).counts.warp_instructions == 0
    with pytest.raises(simulator.IllegalAddress):
        simulate(source, 1, 4, (x,), shared_bytes=8)


def test_an_interrupt_is_one_line(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    InteractiveShell.instance()
    monkeypatch.setattr(simulator.Device, "launch", interrupt)
    source = CudaSource('extern "C" __global__ void spin(int* x) { x[0] = 1; }', "spin")
    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(source, 1, 1, (np.zeros(1, np.int32),))
    (line,) = caught.value._render_traceback_()
    assert line.startswith("KeyboardInterrupt: interrupted while the simulator ran spin (")
