"""`RawKernel` and `RawModule`: called as CuPy calls them, mistakes refused."""

import numpy as np
import pytest

from warplab import simulator
from warplab.compile import errors
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.report.profile import profile

SOURCE = """extern "C" __global__ void multiply(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * b[i];
}
__constant__ float weights[3];
extern "C" __global__ void weight(float* x) { x[threadIdx.x] *= weights[threadIdx.x]; }
__global__ void mangled(float* x) { x[threadIdx.x] += 1; }
template <typename T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
"""


def host(x):
    assert isinstance(x, cp.ndarray)
    return x.get()


@pytest.fixture
def a():
    return cp.asarray(np.arange(6, dtype=np.float32))


@pytest.fixture
def b():
    return cp.asarray(np.arange(6, 0, -1, dtype=np.float32))


def test_a_kernel_of_a_module(a, b):
    c = cp.empty(6, cp.float32)
    kernel = cp.RawModule(code=SOURCE).get_function("multiply")
    kernel((1,), (32,), (a, b, c, np.int32(6)))
    np.testing.assert_array_equal(host(c), host(a) * host(b))
    assert kernel.name == "multiply"
    assert ".entry multiply" in kernel.ptx
    assert kernel.shared_size_bytes == 0
    assert "multiply(const float* a" in repr(kernel)


HALVED = """extern "C" __global__ void halve(float* x) { x[threadIdx.x] *= 0.5f; }
template <typename T> __global__ void halved(T* x) { x[threadIdx.x] *= T(0.5); }"""


def test_subnormal_numbers_are_zeros_as_cupy_compiles():
    """CuPy gives NVRTC -ftz=true; on an H100 half of these came out so, too (2026-11-23, CuPy 14.2)."""
    values = np.array([1e-39, 2e-38, 1, -1e-40, -4e-38], np.float32)
    expected = np.array([0, 0, 0.5, -0.0, -2e-38], np.float32)
    for kernel in (
        cp.RawKernel(HALVED, "halve"),
        cp.RawModule(code=HALVED).get_function("halve"),
        cp.RawModule(code=HALVED, name_expressions=["halved<float>"]).get_function("halved<float>"),
    ):
        x = cp.asarray(values)
        kernel((1,), (5,), (x,))
        assert host(x).view(np.uint32).tolist() == expected.view(np.uint32).tolist()
        assert kernel.options == ()  # those that were given
        assert "mul.ftz.f32" in kernel.ptx or "mul.rn.ftz.f32" in kernel.ptx
    doubles = cp.asarray(np.array([5e-310]))
    cp.RawModule(code=HALVED, name_expressions=["halved<double>"]).get_function("halved<double>")(
        (1,), (1,), (doubles,)
    )
    assert host(doubles)[0] == 2.5e-310


def test_a_source_that_cupy_does_not_compile_keeps_subnormal_numbers():
    x = np.array([1e-39], np.float32)
    simulate(CudaSource(HALVED, "halve"), 1, 1, (x,))
    assert x[0] == np.float32(1e-39) / 2 > 0


def test_a_raw_kernel_with_options_and_shared_memory():
    code = """extern "C" __global__ void f(int* x) {
      extern __shared__ int s[];
      s[threadIdx.x] = x[threadIdx.x]; __syncthreads();
      x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x] + ADD;
    }"""
    x = cp.arange(32, dtype=cp.int32)
    cp.RawKernel(code, "f", ("-DADD=100",))((1,), (32,), (x,), shared_mem=128)
    np.testing.assert_array_equal(host(x), np.arange(32)[::-1] + 100)


def test_name_expressions_and_mangled_names():
    module = cp.RawModule(code=SOURCE, name_expressions=["mangled", "fill<double>"])
    x = cp.zeros(4, cp.float64)
    module.get_function("fill<double>")((1,), (4,), (x, np.float64(2)))
    np.testing.assert_array_equal(host(x), [2] * 4)
    y = cp.zeros(4, cp.float32)
    module.get_function("mangled")((1,), (4,), (y,))
    np.testing.assert_array_equal(host(y), [1] * 4)
    with pytest.raises(RuntimeError, match='extern "C" __global__ void mangled'):
        cp.RawModule(code=SOURCE).get_function("mangled")
    with pytest.raises(ValueError, match=r"no kernel nothing"):
        cp.RawModule(code=SOURCE).get_function("nothing")


def test_constant_memory_through_get_global():
    module = cp.RawModule(code=SOURCE.replace("__constant__", 'extern "C" __constant__'))
    weights = cp.ndarray((3,), cp.float32, module.get_global("weights"))
    weights[...] = cp.asarray([2, 3, 4], cp.float32)
    x = cp.ones(3, cp.float32)
    module.get_function("weight")((1,), (3,), (x,))
    np.testing.assert_array_equal(host(x), [2, 3, 4])


def test_a_variable_of_a_module_that_has_templates_alone():
    code = "__constant__ float w[3];\ntemplate <class T> __global__ void get(T* y) { y[threadIdx.x] = w[threadIdx.x]; }"
    module = cp.RawModule(code=code, name_expressions=["get<float>"])
    cp.ndarray((3,), cp.float32, module.get_global("w"))[...] = cp.asarray([2, 3, 4], cp.float32)
    y = cp.zeros(3, cp.float32)
    module.get_function("get<float>")((1,), (3,), (y,))
    np.testing.assert_array_equal(host(y), [2, 3, 4])


def test_more_than_48_kib_of_shared_memory_must_be_asked_for():
    code = 'extern "C" __global__ void last(int* x) { extern __shared__ int s[]; s[%d] = 7; x[0] = s[%d]; }'
    kernel, x = cp.RawKernel(code % (12288, 12288), "last"), cp.zeros(1, np.int32)
    with pytest.raises(simulator.InvalidLaunch, match="49,156 bytes of dynamic shared memory") as caught:
        kernel((1,), (1,), (x,), shared_mem=49156)
    assert "kernel.max_dynamic_shared_size_bytes = 49156" in caught.value.reason
    kernel.max_dynamic_shared_size_bytes = 49156
    kernel((1,), (1,), (x,), shared_mem=49156)
    assert host(x)[0] == 7


@pytest.mark.parametrize(
    ("grid", "block", "arguments", "error", "message"),
    [
        (1, (32,), "abcn", ArgumentError, r"'grid' has incorrect type \(expected tuple, got int\): write \(1,\)"),
        ((1,), 32, "abcn", ArgumentError, r"'block' has incorrect type \(expected tuple, got int\)"),
        ((1,), (2000,), "abcn", simulator.InvalidLaunch, "2,000"),
        ((1,), (32,), "Abcn", ArgumentError, r"numpy.ndarray of shape \(6,\)"),
        ((1,), (32,), "abc", ArgumentError, "takes 4 arguments, 3 were given"),
        ((1,), (32,), "abci", ArgumentError, "takes -2,147,483,648 to 2,147,483,647"),
        ((1,), (32,), "dbcn", ArgumentError, "points to float32, but the array holds float64"),
        ((1,), (32,), "Nbcn", ArgumentError, "cp.asarray"),
    ],
)
def test_launch_mistakes(a, b, grid, block, arguments, error, message):
    values = {
        "a": a,
        "b": b,
        "c": cp.zeros_like(a),
        "n": np.int32(6),
        "A": a.get(),
        "i": 2**31,
        "d": a.astype(np.float64),
        "N": cuda.to_device(a.get()),
    }
    kernel = cp.RawKernel(SOURCE, "multiply")
    with pytest.raises(error, match=message):
        kernel(grid, block, tuple(values[x] for x in arguments))
    with pytest.raises(ArgumentError, match="must be a tuple"):
        kernel((1,), (32,), a)


def test_a_compile_error_names_the_line():
    with pytest.raises(errors.CompileError, match=r'kernel\.cu, line 2: error: identifier "y"'):
        cp.RawModule(code='extern "C" __global__ void f(float* x) {\n  x[0] = y;\n}').compile()


def test_modules_need_source():
    with pytest.raises(TypeError, match="Exactly one"):
        cp.RawModule()
    with pytest.raises(NotImplementedError, match=r"read_text"):
        cp.RawModule(path="kernels.cubin")
    with pytest.raises(NotImplementedError, match="NVRTC"):
        cp.RawKernel(SOURCE, "multiply", backend="nvcc")
    with pytest.raises(TypeError, match="expected tuple, got list"):
        cp.RawModule(code=SOURCE, options=["-DX"])


def test_kernels_of_numba_take_arrays_of_cupy(a):
    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    double[1, 32](a)
    double[1, 32](a[::2])
    np.testing.assert_array_equal(host(a), [0, 2, 8, 6, 16, 10])


def test_launches_are_profiled(a, b):
    with profile() as p:
        cp.RawKernel(SOURCE, "multiply")((1,), (32,), (a, b, cp.empty_like(a), np.int32(6)))
        a + b  # no launch that the bench could see
    assert p.kernels == ["multiply"]
    assert p[0].counts.global_load_requests == 2
    assert {access.array for access in p[0].accesses} == {"a", "b", "c"}
    assert p[0].sources == {"kernel.cu": SOURCE}
