"""Any kernel and its arguments become a launch; wrong arguments are refused by name."""

import numpy as np
import pytest
from numba import cuda as numba_cuda

from warplab import simulator
from warplab.compile import cuda_signature
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch.dimensions import dimensions
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import CudaSource, source_of
from warplab.launch.simulate import prepare, simulate

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


def test_empty_arrays_are_no_error():
    a = np.empty(0, np.float32)
    simulate(multiply_function, 1, 32, (a, a, a))


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


def test_templates_by_name_expression():
    x = np.arange(5, dtype=np.float64)
    profile = simulate(CudaSource(TEMPLATE, "scale<double>"), 1, 32, (x, np.float64(2), np.int32(5)))
    np.testing.assert_array_equal(x, 2 * np.arange(5))
    assert profile.kernel == "scale<double>"
    with pytest.raises(simulator.IllegalAddress) as caught:
        simulate(CudaSource(TEMPLATE, "scale<double>"), 1, 32, (x, np.float64(2), np.int32(6)))
    assert "in kernel scale<double>" in str(caught.value)


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
        ((A, B, C, 100), r"argument 4 of kernel multiply, `int n`, is int32 \(4 bytes\).*: write np.int32\(n\)"),
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
        ("unsigned x", 1, "np.uint32(x)"),
        ("size_t x", np.int32(1), "np.uint64(x)"),
        ("bool x", 1, "np.bool(x)"),
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


@pytest.mark.parametrize("value", [(1, 2, 3, 4), (), "12"])
def test_grids_that_are_none(value):
    with pytest.raises((ValueError, TypeError), match="grid must be"):
        dimensions(value, "grid")


def test_a_grid_of_floats_is_told_of_integer_division():
    with pytest.raises(ArgumentError, match=r"\(n \+ block - 1\) // block"):
        simulate(multiply_function, 100 / 32, 32, (A, B, C))


def test_signatures_are_read_from_source():
    source = r"""
    // __global__ void in_a_comment(float* a);
    #define MAKE(name) \
      __global__ void name(int x)
    /* __global__ void also(int) */
    template <typename T, int N = (3 > 2)> __global__ void __launch_bounds__(256, 2) t(T* a, int n) {}
    extern "C" __global__ void c(float const *a, double b[], unsigned long long m, real *r, float2 v) {
      const char* s = "__global__ void in_a_string(int)";
    }
    extern "C" {
      static __global__ void
      block (const uint8_t *__restrict__ q, void *p) { if (1) { } }
    }
    __global__ void plain(void);
    __global__ void plain() {}
    """
    found = cuda_signature.kernels(source)
    assert list(found) == ["t", "c", "block", "plain"]
    assert [(s.extern_c, s.template) for s in found.values()] == [
        (False, True),
        (True, False),
        (True, False),
        (False, False),
    ]
    c = found["c"].parameters
    assert [(p.name, p.pointer, p.dtype, p.count) for p in c] == [
        ("a", True, np.float32, 1),
        ("b", True, np.float64, 1),
        ("m", False, np.uint64, 1),
        ("r", True, None, 1),
        ("v", False, np.float32, 2),
    ]
    assert str(found["block"]) == "block(const uint8_t *__restrict__ q, void *p)"
    assert found["plain"].parameters == ()
