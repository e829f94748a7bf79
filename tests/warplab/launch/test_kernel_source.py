"""What a kernel is made from."""

import numpy as np
import pytest
from numba import cuda as numba_cuda

from warplab import profile, simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource, PtxSource
from warplab.launch.simulate import simulate

MULTIPLY = """extern "C" __global__ void multiply(const float* a, const float* __restrict__ b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * b[i];
}
"""


TEMPLATE = """template <typename T> __global__ void scale(T* x, T factor, int n) {
  int i = threadIdx.x;
  if (i < n) x[i] *= factor;
}
"""


def multiply_function(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] * b[i]


def test_templates_by_name_expression():
    x = np.arange(5, dtype=np.float64)
    profile = simulate(CudaSource(TEMPLATE, "scale<double>"), 1, 32, (x, np.float64(2), np.int32(5)))
    np.testing.assert_array_equal(x, 2 * np.arange(5))
    assert profile.kernel == "scale<double>"
    with pytest.raises(simulator.IllegalAddress) as caught:
        simulate(CudaSource(TEMPLATE, "scale<double>"), 1, 32, (x, np.float64(2), np.int32(6)))
    assert "in kernel scale<double>" in str(caught.value)


def test_what_is_no_kernel_is_refused():
    with pytest.raises(TypeError, match="is not a kernel"):
        simulate("multiply", 1, 1, ())
    with pytest.raises(TypeError, match="device function"):
        simulate(numba_cuda.jit(device=True)(multiply_function), 1, 1, ())
    with pytest.raises(ValueError, match=r"no kernel divide in kernel\.cu; its __global__ functions: multiply"):
        simulate(CudaSource(MULTIPLY, "divide"), 1, 1, ())


def test_a_copied_function_is_compiled_on_its_own():
    def one(x):
        x[0] = 1

    x = np.zeros(1)
    simulate(one, 1, 1, (x,))

    def two(x):
        x[0] = 2

    two.__dict__.update(one.__dict__)  # as functools.wraps does
    simulate(two, 1, 1, (x,))
    assert x[0] == 2


def test_a_kernel_by_its_ptx():
    ptx = CudaSource(MULTIPLY, "multiply").ptx
    a, b, c = np.arange(40, dtype=np.float32), np.full(40, 3, np.float32), np.zeros(40, np.float32)
    launch = simulate(PtxSource(ptx), 2, 32, (a, b, c, np.int32(40)))
    np.testing.assert_array_equal(c, 3 * a)
    assert launch.kernel == "multiply"
    assert launch.assemble is not None
    assert launch.assemble(90).cubin[:4] == b"\x7fELF"
    with pytest.raises(ValueError, match="there is no kernel 'divide' in this PTX; its entries: multiply"):
        PtxSource(ptx, "divide")
    with pytest.raises(simulator.UnsupportedInstruction, match="at line 1 of the PTX"):
        PtxSource("x")


def test_profiles_inside_each_other_get_the_launches_made_while_they_were_open():
    x = np.zeros(4)
    kernel = cuda.jit(lambda x: None)
    with profile() as outer:
        with profile() as inner:
            kernel[1, 4](x)
        kernel[1, 4](x)
    assert (len(outer), len(inner)) == (2, 1)
