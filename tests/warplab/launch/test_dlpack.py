"""CPU arrays of other libraries as arguments of launches and in CuPy's stand-in."""

from __future__ import annotations

import importlib
import os

import ml_dtypes
import numpy as np
import pytest

from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch import dlpack
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

DOUBLE = 'extern "C" __global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }'
COPY = """#include <cuda_bf16.h>
extern "C" __global__ void copy(const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
    int i = threadIdx.x; if (i < n) y[i] = x[i] + x[i];
}"""


class Tensor:
    """Another library's array: NumPy's memory, handed out by DLPack only, with or without versions."""

    def __init__(self, array: np.ndarray, versions: bool = True, read_only: bool = False) -> None:
        self._array, self._versions = array.view(), versions
        self._shown = array.view()
        self._shown.flags.writeable = not read_only
        self._array.flags.writeable = not (read_only and versions)  # NumPy exports read-only arrays with a version

    def __dlpack__(self, **options):
        if not self._versions and options:
            raise TypeError("unexpected keyword arguments")
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        return self._shown


def values(n: int = 24) -> np.ndarray:
    return np.random.default_rng(n).standard_normal(n, np.float32)


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize("view", ["x", "x[::-1]", "x[1::3]", "x.reshape(4, 6).T", "x.reshape(4, 6)[:, 2:4]"])
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_views_share_the_memory(versions, view, dtype):
    x = values().astype(dtype)
    part = eval(view, {"x": x})
    seen = dlpack.host_view(Tensor(part, versions))
    np.testing.assert_array_equal(seen, part)
    assert seen.dtype == part.dtype
    assert seen.strides == part.strides
    seen[...] = 0
    assert not part.any()


def test_kernels_read_and_write_them():
    x = values()
    expected = 2 * x
    simulate(CudaSource(DOUBLE, "twice"), 1, 32, (Tensor(x), np.int32(24)))
    np.testing.assert_array_equal(x, expected)
    cp.RawKernel(DOUBLE, "twice")((1,), (32,), (Tensor(x), np.int32(24)))
    np.testing.assert_array_equal(x, 2 * expected)


def test_numba_kernels_take_strided_ones():
    @cuda.jit
    def negate(x):
        i, j = cuda.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            x[i, j] = -x[i, j]

    x = values().reshape(4, 6)
    expected = x.copy()
    expected[:, ::-2] *= -1
    negate[(1, 1), (8, 8)](Tensor(x[:, ::-2]))
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("versions", [True, False])
def test_read_only_ones_may_be_read(versions):
    x, y = values(), np.zeros(24, np.float32)
    code = 'extern "C" __global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }'
    simulate(CudaSource(code, "copy"), 1, 24, (Tensor(x, versions, True), y))
    np.testing.assert_array_equal(x, y)
    with pytest.raises(ArgumentError, match="wrote to its argument `x`, a read-only array of the host"):
        simulate(CudaSource(DOUBLE, "twice"), 1, 32, (Tensor(x, versions, True), np.int32(24)))


def test_arrays_of_the_device_and_of_numpy_are_not_foreign():
    for value in (np.zeros(3), np.float32(1), cp.zeros(3), cuda.to_device(np.zeros(3)), cuda.mapped_array(3), 1, "x"):
        assert not dlpack.is_foreign(value)


def test_types_that_numpy_lacks_are_named():
    class Capsule(Tensor):
        def __dlpack__(self, **options):
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    with pytest.raises(BufferError, match=r"tensor.detach\(\)"):
        simulate(CudaSource(DOUBLE, "twice"), 1, 32, (Capsule(values()), np.int32(24)))


def test_cupy_copies_them():
    x = values()
    for made in (cp.asarray(Tensor(x)), cp.array(Tensor(x)), cp.from_dlpack(Tensor(x))):
        np.testing.assert_array_equal(made.get(), x)
        made *= 2
        np.testing.assert_array_equal(x, values())
    assert cp.asarray(Tensor(x), dtype=np.float64).dtype == np.float64
    with pytest.raises(TypeError, match="from_dlpack takes arrays with __dlpack__"):
        cp.from_dlpack([1, 2])


def test_what_cupy_hands_out_shares_its_memory():
    x = cp.zeros(24, cp.float32)
    outside = Tensor(np.from_dlpack(x))
    outside._array[:] = values()
    np.testing.assert_array_equal(x.get(), values())
    cp.RawKernel(DOUBLE, "twice")((1,), (32,), (outside, np.int32(24)))  # not a copy of it
    np.testing.assert_array_equal(x.get(), 2 * values())
    again = cp.from_dlpack(outside)
    again += 1
    np.testing.assert_array_equal(x.get(), 2 * values() + 1)
    assert again.data.ptr == x.data.ptr
    kept = np.from_dlpack(cp.arange(5))
    assert kept.tolist() == [0, 1, 2, 3, 4]  # of an array that nobody else refers to


@pytest.mark.tensorflow
def test_tensorflow():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    x = tf.constant(values())
    np.testing.assert_array_equal(cp.asarray(x).get(), values())
    small = tf.cast(x, tf.bfloat16)
    doubled = np.zeros(24, ml_dtypes.bfloat16)
    simulate(CudaSource(COPY, "copy"), 1, 32, (small, doubled, np.int32(24)))
    np.testing.assert_array_equal(doubled, values().astype(ml_dtypes.bfloat16) * ml_dtypes.bfloat16(2))
    with pytest.raises(ArgumentError, match="those of JAX and TensorFlow"):
        simulate(CudaSource(DOUBLE, "twice"), 1, 32, (x, np.int32(24)))


@pytest.mark.parametrize("library", ["jax.numpy", "torch"])
def test_other_libraries(library):
    """Not among the pins: run where they are installed."""
    if importlib.util.find_spec(library.split(".")[0]) is None:
        pytest.skip(f"{library} is not installed")
    module = importlib.import_module(library)
    x = module.asarray(values())
    np.testing.assert_array_equal(cp.asarray(x).get(), values())
    doubled = np.zeros(24, ml_dtypes.bfloat16)
    small = x.astype(module.bfloat16) if library == "jax.numpy" else x.to(module.bfloat16)
    simulate(CudaSource(COPY, "copy"), 1, 32, (small, doubled, np.int32(24)))
    np.testing.assert_array_equal(doubled, values().astype(ml_dtypes.bfloat16) * ml_dtypes.bfloat16(2))
    if library == "torch":
        simulate(CudaSource(DOUBLE, "twice"), 1, 32, (x, np.int32(24)))
        np.testing.assert_array_equal(np.asarray(x), 2 * values())
    else:
        with pytest.raises(ArgumentError, match="those of JAX and TensorFlow"):
            simulate(CudaSource(DOUBLE, "twice"), 1, 32, (x, np.int32(24)))
