"""The stand-in for CuPy: arrays that stay on the device, NumPy refused, kernels called as CuPy calls them."""

import inspect

import cupy
import numpy as np
import pytest

from warplab import simulator
from warplab.compile import errors
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch.errors import ArgumentError
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


# -- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (cp, cupy),
        (cp.ndarray, cupy.ndarray),
        (cp.cuda, cupy.cuda),
        (cp.random, cupy.random),
        (cp.testing, cupy.testing),
    ],
)
def test_every_name_is_one_of_cupy(ours, theirs):
    own = {"DeviceArray", "annotations", "np", "lift", "sys", "types", "functools", "Callable"}
    own |= {"ndarray"} if ours is not cp else set()  # imported there
    names = {n for n in dir(ours) if not n.startswith("_")} - own
    assert len(names) > 2
    assert [n for n in sorted(names) if not hasattr(theirs, n)] == []


def test_python_functions_take_cupy_s_parameters():
    checked = 0
    for name in ("array", "asarray", "asnumpy", "empty", "zeros", "ones", "full", "copyto", "empty_like"):
        theirs = list(inspect.signature(getattr(cupy, name)).parameters)
        ours = list(inspect.signature(getattr(cp, name)).parameters)
        assert [p for p in ours if p not in theirs] == [], name
        assert theirs[: len(ours)][0] == ours[0], name
        checked += 1
    assert checked == 9


def test_what_is_missing_says_where_it_is():
    for space in (cp, cp.cuda, cp.random, cp.testing):
        with pytest.raises(AttributeError, match="on a GPU all of CuPy is there"):
            _ = space.no_such_thing
    assert not hasattr(cp, "fft")


# -- host and device -----------------------------------------------------------------------------------------


def test_to_the_device_and_back(a):
    np.testing.assert_array_equal(cp.asnumpy(a), np.arange(6))
    out = np.zeros(6, np.float32)
    assert a.get(out=out) is out
    np.testing.assert_array_equal(out, np.arange(6))
    a.set(out + 1)
    np.testing.assert_array_equal(host(a), np.arange(1, 7))
    assert cp.asarray(a) is a
    assert cp.array(a) is not a
    assert cp.asarray(a, dtype=cp.float64).dtype == np.float64
    np.testing.assert_array_equal(host(cp.array([[1, 2], [3, 4]])), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(host(cp.array([a[0], a[1]])), [1, 2])


def test_a_copy_is_no_view(a):
    before = a.get()
    for copy in (a.copy(), cp.array(a), a.astype(np.float32), a.flatten(), a + 0):
        copy[...] = -1
    np.testing.assert_array_equal(host(a), before)


@pytest.mark.parametrize(
    ("values", "error"),
    [(np.zeros(5, np.float32), ValueError), (np.zeros(6), TypeError), ([0.0] * 6, TypeError)],
)
def test_set_takes_what_fits(a, values, error):
    with pytest.raises(error):
        a.set(values)


def test_nothing_comes_to_the_host_unasked(a):
    for convert in (np.asarray, np.array, np.ascontiguousarray, np.zeros(6).__iadd__):
        with pytest.raises(TypeError):
            convert(a)
    with pytest.raises(TypeError, match=r"Implicit conversion to a NumPy array is not allowed. Please use `.get\(\)`"):
        np.asarray(a)


@pytest.mark.parametrize(
    "mix",
    [
        lambda a: a + np.ones(6, np.float32),
        lambda a: np.ones(6, np.float32) * a,
        lambda a: np.add(a, np.ones(6)),
        lambda a: cp.add(a, np.ones(6)),
        lambda a: cp.sqrt(np.ones(6)),
        lambda a: cp.dot(a, np.ones(6)),
        lambda a: a.__setitem__(slice(None), np.ones(6)),
        lambda a: a + [1.0] * 6,
        lambda a: a == np.ones(6),
    ],
)
def test_numpy_arrays_do_not_mix_with_device_arrays(a, mix):
    with pytest.raises(TypeError, match="Unsupported type"):
        mix(a)


def test_arrays_of_numba_are_taken_without_a_copy():
    numbas = cuda.to_device(np.arange(3, dtype=np.float32))
    ours = cp.asarray(numbas)
    ours += 1
    np.testing.assert_array_equal(numbas.copy_to_host(), [1, 2, 3])
    back = cuda.to_device(ours)
    back[0] = 9
    np.testing.assert_array_equal(host(ours), [9, 2, 3])


def test_memory_is_freed_with_the_last_array():
    memory = simulator.default_device().memory
    before = memory.used_bytes
    x = cp.zeros(1000, cp.float32)
    y = x[::2].reshape(20, 25).T
    del x
    assert memory.used_bytes == before + 4000
    del y
    assert memory.used_bytes == before


# -- computing -------------------------------------------------------------------------------------------------

EXPRESSIONS = {
    "a + b": lambda m, a, b: a + b,
    "a * 2": lambda m, a, b: a * 2,
    "2.5 - a": lambda m, a, b: 2.5 - a,
    "a / np.float64(3)": lambda m, a, b: a / np.float64(3),
    "a ** 2 % 5 // 2": lambda m, a, b: a**2 % 5 // 2,
    "-a": lambda m, a, b: -a,
    "a @ b": lambda m, a, b: a @ b,
    "a > b": lambda m, a, b: a > b,
    "sqrt": lambda m, a, b: m.sqrt(a),
    "maximum": lambda m, a, b: m.maximum(a, b),
    "sum": lambda m, a, b: a.sum(),
    "mean of axis": lambda m, a, b: m.mean(a.reshape(2, 3), axis=1, keepdims=True),
    "argmax": lambda m, a, b: b.argmax(),
    "cumsum": lambda m, a, b: m.cumsum(a),
    "where": lambda m, a, b: m.where(a > b, a, 0),
    "concatenate": lambda m, a, b: m.concatenate([a, b]),
    "stack": lambda m, a, b: m.stack((a, b), axis=1),
    "einsum": lambda m, a, b: m.einsum("i,j->ij", a, b),
    "transpose": lambda m, a, b: a.reshape(2, 3).transpose(1, 0) * 2,
    "mask": lambda m, a, b: a[a > 2],
    "index array": lambda m, a, b: a[m.asarray([3, 0, 3])],
    "element": lambda m, a, b: a[4],
    "newaxis": lambda m, a, b: a[:, None] + b[None],
    "int / int": lambda m, a, b: m.arange(5) / m.arange(1, 6),
    "int32 * float32": lambda m, a, b: m.arange(6, dtype=m.int32) * a,
    "uint8 + 1": lambda m, a, b: m.full(3, 255, m.uint8) + 1,
    "float16 + float32": lambda m, a, b: a.astype(m.float16) + a,
    "clip": lambda m, a, b: a.clip(1, 4),
    "std": lambda m, a, b: m.std(a),
    "linspace": lambda m, a, b: m.linspace(0, 1, 5, dtype=m.float32),
    "eye": lambda m, a, b: m.eye(3),
    "zeros_like": lambda m, a, b: m.zeros_like(a),
    "tri": lambda m, a, b: m.tril(m.ones((3, 3))),
    "sort": lambda m, a, b: m.sort(b),
    "0-d + 1": lambda m, a, b: a[2] + 1,
    "complex": lambda m, a, b: (a + 1j * b).real,
    "in place": lambda m, a, b: a.__iadd__(b).__imul__(2),
    "out": lambda m, a, b: m.add(a, b, out=m.empty_like(a)),
    "split": lambda m, a, b: m.split(a, 3)[1],
    "unique": lambda m, a, b: m.unique(a // 2),
}


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_results_are_numpy_s_with_dtype_and_shape_on_the_device(what, a, b):
    expression = EXPRESSIONS[what]
    expected = np.asarray(expression(np, a.get(), b.get()))
    result = host(expression(cp, a, b))
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


def test_numpy_s_functions_go_to_the_device(a, b):
    assert host(np.add(a, b)).tolist() == [6] * 6
    assert host(np.sum(a)) == 15
    assert host(np.concatenate([a, b])).shape == (12,)


def test_numbers_from_arrays_without_axes(a):
    total = a.sum()
    assert total.shape == ()
    assert float(total) == 15.0
    assert int(total) == 15
    assert bool(total)
    assert total.item() == 15.0
    assert f"{total:.1f}" == "15.0"
    assert range(6)[cp.argmax(a)] == 5
    with pytest.raises(ValueError, match="ambiguous"):
        bool(a)
    assert repr(a) == "array([0., 1., 2., 3., 4., 5.], dtype=float32)"
    assert [float(x) for x in a] == [0, 1, 2, 3, 4, 5]


def test_assignments(a, b):
    a[0] = 10
    a[1:3] = b[1:3]
    a[a == 5] = 7
    a.reshape(2, 3)[1, 2] = a[0]
    np.testing.assert_array_equal(host(a), [10, 7, 4, 3, 4, 10])
    a[cp.asarray([1, 3])] = 0
    np.testing.assert_array_equal(host(a), [10, 0, 4, 0, 4, 10])


def test_written_parts_are_known_to_the_kernels():
    x = cp.empty((4, 4), cp.float32)
    x[:, 1] = 1
    copy = cp.RawKernel('extern "C" __global__ void f(float* x) { x[4 * threadIdx.x] = x[4 * threadIdx.x + 1]; }', "f")
    copy((1,), (4,), (x,))
    np.testing.assert_array_equal(host(x[:, 0]), [1] * 4)
    with pytest.raises(simulator.UninitializedRead):
        cp.RawKernel('extern "C" __global__ void f(float* x) { x[0] = x[2]; }', "f")((1,), (1,), (x,))
    cp.add(x, 1, out=x)
    cp.RawKernel('extern "C" __global__ void f(float* x) { x[0] = x[2]; }', "f")((1,), (1,), (x,))


def test_random_numbers():
    cp.random.seed(3)
    first = cp.random.rand(1000, dtype=cp.float32)
    cp.random.seed(3)
    assert bool((cp.random.rand(1000, dtype=cp.float32) == first).all())
    assert first.dtype == np.float32
    assert 0 <= float(first.min()) < 0.1 < 0.9 < float(first.max()) < 1
    assert cp.random.randn(2, 3).dtype == np.float64
    assert cp.random.randint(0, 5, (10,), dtype=cp.int32).dtype == np.int32
    assert cp.random.default_rng(1).standard_normal((2, 2), dtype=np.float32).dtype == np.float32
    assert abs(float(cp.random.normal(5, 0.1, 1000).mean()) - 5) < 0.05
    assert sorted(cp.random.permutation(5).tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="float32 and float64"):
        cp.random.rand(3, dtype=cp.int32)


def test_testing_compares_host_and_device(a):
    cp.testing.assert_allclose(a, a.get())
    cp.testing.assert_array_equal(a, cp.arange(6))
    with pytest.raises(AssertionError):
        cp.testing.assert_allclose(a, a + 1)


def test_get_array_module(a):
    assert cp.get_array_module(np.ones(1), a) is cp
    assert cp.get_array_module(np.ones(1)) is np


# -- kernels ---------------------------------------------------------------------------------------------------


def test_a_kernel_of_a_module(a, b):
    c = cp.empty(6, cp.float32)
    kernel = cp.RawModule(code=SOURCE).get_function("multiply")
    kernel((1,), (32,), (a, b, c, np.int32(6)))
    np.testing.assert_array_equal(host(c), host(a) * host(b))
    assert kernel.name == "multiply"
    assert ".entry multiply" in kernel.ptx
    assert kernel.shared_size_bytes == 0
    assert "multiply(const float* a" in repr(kernel)


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


@pytest.mark.parametrize(
    ("grid", "block", "arguments", "error", "message"),
    [
        (1, (32,), "abcn", ArgumentError, r"'grid' has incorrect type \(expected tuple, got int\): write \(1,\)"),
        ((1,), 32, "abcn", ArgumentError, r"'block' has incorrect type \(expected tuple, got int\)"),
        ((1,), (2000,), "abcn", simulator.InvalidLaunch, "2,000"),
        ((1,), (32,), "Abcn", ArgumentError, r"numpy.ndarray of shape \(6,\)"),
        ((1,), (32,), "abc", ArgumentError, "takes 4 arguments, 3 were given"),
        ((1,), (32,), "abci", ArgumentError, r"write np.int32\(n\)"),
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
        "i": 6,
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


# -- the device --------------------------------------------------------------------------------------------


def test_streams_events_device():
    with cp.cuda.Stream(non_blocking=True) as stream:
        start = stream.record()
    end = cp.cuda.Event()
    end.record(stream)
    end.synchronize()
    with pytest.raises(RuntimeError, match="no GPU here"):
        cp.cuda.get_elapsed_time(start, end)
    cp.cuda.Stream.null.synchronize()
    cp.cuda.Device().synchronize()
    cp.cuda.runtime.deviceSynchronize()
    assert cp.cuda.Device(0).compute_capability == "90"
    assert cp.cuda.runtime.getDeviceProperties(0)["name"] == b"PTX simulator"
    assert len(np.frombuffer(cp.cuda.alloc_pinned_memory(64), np.float32, 16)) == 16


def test_memory_lives_as_long_as_any_view_of_it():
    """NumPy may still work on a device array's bytes when the array itself is gone, as in `a[a > 2]` on Python 3.12."""
    a = cp.arange(6, dtype=cp.float32)
    view = a._view[1:]
    used = simulator.default_device().memory.used_bytes
    del a
    assert view.tolist() == [1, 2, 3, 4, 5]
    assert simulator.default_device().memory.used_bytes == used
    del view
    assert simulator.default_device().memory.used_bytes == used - 24
