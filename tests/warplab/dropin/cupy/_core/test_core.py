"""`ndarray`: on the device until asked for, computing as NumPy does, NumPy arrays refused."""

import numpy as np
import pytest

from tests.support.cupy_expressions import EXPRESSIONS
from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda


def host(x):
    assert isinstance(x, cp.ndarray)
    return x.get()


@pytest.fixture
def a():
    return cp.asarray(np.arange(6, dtype=np.float32))


@pytest.fixture
def b():
    return cp.asarray(np.arange(6, 0, -1, dtype=np.float32))


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


def test_what_nobody_wrote_is_garbage_on_the_host_and_an_error_in_a_kernel():
    @cuda.jit
    def double(x):
        x[cuda.grid(1)] *= 2

    for make in (cp.empty, cuda.device_array):
        for dtype in (np.float32, np.float64, np.complex64, np.int32, np.uint8):
            x = make((2, 4), dtype)
            held = x.get() if isinstance(x, cp.ndarray) else x.copy_to_host()
            assert not (held == 0).any(), (make, dtype)
            assert np.isnan(held).all() == (np.dtype(dtype).kind in "fc")
    for x in (
        cp.empty(4, np.float32),
        cp.empty_like(cp.zeros(4, np.float32)),
        cuda.device_array_like(np.zeros(4, "f4")),
    ):
        with pytest.raises(simulator.UninitializedRead):
            double[1, 4](x)
    np.testing.assert_array_equal(cp.zeros(4).get(), np.zeros(4))


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


def test_arrays_in_fortran_order_and_like_others():
    rows = cp.arange(6, dtype=cp.float32).reshape(2, 3)
    columns = cp.asfortranarray(rows)
    assert (columns.strides, cp.asfortranarray(columns)) == ((4, 8), columns)
    np.testing.assert_array_equal(host(columns), host(rows))
    for make in (cp.empty_like, cp.zeros_like, cp.ones_like, lambda a, **order: cp.full_like(a, 7, **order)):
        assert [make(a).strides for a in (rows, columns)] == [(12, 4), (4, 8)]
        assert make(columns, order="C").strides == (12, 4)
    assert host(cp.full_like(columns, 7, dtype=cp.int8, shape=(2,))).tolist() == [7, 7]


def test_memory_is_freed_with_the_last_array():
    memory = simulator.default_device().memory
    before = memory.used_bytes
    x = cp.zeros(1000, cp.float32)
    y = x[::2].reshape(20, 25).T
    del x
    assert memory.used_bytes == before + 4000
    del y
    assert memory.used_bytes == before


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
