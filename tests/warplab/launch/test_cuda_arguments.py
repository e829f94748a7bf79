"""Arguments of CUDA C++ kernels: wrong ones are refused by name, with what to write."""

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import CudaSource, PtxSource
from warplab.launch.simulate import simulate

MULTIPLY = """extern "C" __global__ void multiply(const float* a, const float* __restrict__ b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * b[i];
}
"""


def vectors(n=100):
    rng = np.random.default_rng(n)
    return rng.random(n, np.float32), rng.random(n, np.float32), np.full(n, np.nan, np.float32)


def test_a_struct_is_passed_by_value():
    source = 'struct P { float x; int y; };\nextern "C" __global__ void f(P p, float* out) { out[0] = p.x + p.y; }'
    out = np.zeros(1, np.float32)
    p = np.array([(1.5, 2)], [("x", np.float32), ("y", np.int32)])
    simulate(CudaSource(source, "f"), 1, 1, (p, out))
    assert out[0] == 3.5


A, B, C = vectors()
N = np.int32(100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A, B, C), r"takes 4 arguments, 3 were given"),
        ((A, B, C, N, N), r"kernel multiply\(const float\* a, .*, int n\) takes 4 arguments, 5 were given"),
        (
            (A.astype(np.float64), B, C, N),
            r"argument 1 of kernel multiply, `const float\* a`, points to float32, .* float64",
        ),
        ((A, B, np.zeros(100, np.int32), N), r"argument 3 .*`float \*c`, points to float32, but the array holds int32"),
        (
            (A, B, C, 2**31),
            r"4 of kernel multiply, `int n`, is int32 \(4 bytes\) and takes -2,147,483,648 to 2,147,483,647, but 2,14",
        ),
        ((A, B, C, np.uint64(2**63)), r"`int n`, is int32 .* but 9,223,372,036,854,775,808 was given: pass what fits"),
        ((A, B, C, np.float32(100)), r"`int n`, is int32 .* float32.*write np.int32\(n\)"),
        ((A, B, C, C), r"`int n`, is a value of 4 bytes, but an array was given"),
        ((A, B, 1.5, N), r"`float \*c`, is a pointer, but 1.5 \(float\) was given"),
        ((A, B, C, "100"), r"`int n`, cannot take a str"),
    ],
)
def test_wrong_arguments_of_a_cuda_kernel_are_named(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        simulate(CudaSource(MULTIPLY, "multiply"), 4, 32, arguments)


@pytest.mark.parametrize(
    ("declaration", "value", "fix"),
    [
        ("float x", 1.5, "np.float32(x)"),
        ("double x", 1, "np.float64(x)"),
        ("long long x", np.int32(1), "np.int64(x)"),
        ("int x", 1.0, "np.int32(x)"),
        ("unsigned x", np.uint16(1), "np.uint32(x)"),
        ("size_t x", np.int32(1), "np.uint64(x)"),
        ("bool x", 1.0, "np.bool(x)"),
    ],
)
def test_scalars_of_the_wrong_type_are_told_the_right_one(declaration, value, fix):
    source = f'extern "C" __global__ void f({declaration}, double* out) {{ out[0] = x; }}'
    with pytest.raises(ArgumentError) as caught:
        simulate(CudaSource(source, "f"), 1, 1, (value, np.zeros(1)))
    assert str(caught.value).endswith(f"write {fix}")


@pytest.mark.parametrize(
    ("declaration", "value"),
    [
        ("long long x", 7),
        ("int x", 7),
        ("int x", -(2**31)),
        ("unsigned x", 2**32 - 1),
        ("unsigned x", np.uint64(7)),
        ("signed char x", np.int64(-128)),
        ("bool x", 1),
        ("double x", 7.0),
        ("unsigned x", np.int32(7)),
        ("bool x", True),
        ("number x", np.float32(7)),
    ],
)
def test_scalars_that_fit_are_taken(declaration, value):
    source = f'typedef float number;\nextern "C" __global__ void f({declaration}, double* out) {{ out[0] = x; }}'
    out = np.zeros(1)
    simulate(CudaSource(source, "f"), 1, 1, (value, out))
    assert out[0] == float(value)


@pytest.mark.parametrize(
    ("declaration", "value"),
    [("int x", -(2**31) - 1), ("unsigned x", -1), ("unsigned x", 2**32), ("signed char x", 128), ("bool x", 2)],
)
def test_integers_that_do_not_fit_are_refused(declaration, value):
    source = f'extern "C" __global__ void f({declaration}, double* out) {{ out[0] = x; }}'
    with pytest.raises(ArgumentError, match=f"`{declaration}`, is .* but {value:,} was given"):
        simulate(CudaSource(source, "f"), 1, 1, (value, np.zeros(1)))


def test_of_ptx_alone_both_readings_of_32_bits_fit():
    ptx = CudaSource('extern "C" __global__ void f(unsigned x, double* out) { out[0] = x; }', "f").ptx
    for value, read in ((-1, 2**32 - 1), (2**32 - 1, 2**32 - 1)):
        out = np.zeros(1)
        simulate(PtxSource(ptx), 1, 1, (value, out))
        assert out[0] == read
    with pytest.raises(ArgumentError, match="takes -2,147,483,648 to 4,294,967,295"):
        simulate(PtxSource(ptx), 1, 1, (2**32, np.zeros(1)))


@pytest.mark.parametrize(
    ("pointer", "dtype", "fits"),
    [
        ("unsigned*", np.int32, True),
        ("int*", np.int64, False),
        ("const unsigned char*", np.bool_, True),
        ("float4*", np.float32, True),
        ("float4*", np.float64, False),
        ("float2*", np.complex64, True),
        ("half*", np.uint16, False),
        ("void*", np.float64, True),
        ("number*", np.float64, True),
        ("int8_t*", np.uint8, True),
        ("short*", np.float16, False),
    ],
)
def test_the_dtype_behind_a_pointer(pointer, dtype, fits):
    source = "#include <cuda_fp16.h>\n#include <cuda/std/cstdint>\nusing cuda::std::int8_t;\ntypedef float number;\n"
    source += f'extern "C" __global__ void f({pointer} x) {{}}'
    if fits:
        simulate(CudaSource(source, "f"), 1, 1, (np.zeros(8, dtype),))
    else:
        with pytest.raises(ArgumentError, match=f"the array holds {np.dtype(dtype)}"):
            simulate(CudaSource(source, "f"), 1, 1, (np.zeros(8, dtype),))


def test_a_host_pointer_reaches_the_kernel_and_fails_there():
    with pytest.raises(simulator.HostPointer, match="host memory"):
        simulate(CudaSource(MULTIPLY, "multiply"), 4, 32, (A, B, C.ctypes.data, N))
