"""`cuda.vectorize` and `cuda.guvectorize` against NumPy."""

import numpy as np
import pytest

from tests.support.lazily import decorated
from warplab.dropin import numba_cuda as cuda


@decorated(cuda.vectorize, ["float32(float32, float32)", "float64(float64, float64)", "int32(int32, int32)"])
def weighted(a, b):
    return a + 2 * b


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_vectorize(dtype):
    a = np.arange(60).astype(dtype).reshape(3, 20)
    b = a[::-1].copy()
    np.testing.assert_array_equal(weighted(a, b), a + 2 * b)
    np.testing.assert_array_equal(weighted(a, a[:1]), a + 2 * a[:1])
    np.testing.assert_array_equal(weighted(a.T, b.T), (a + 2 * b).T)
    np.testing.assert_array_equal(weighted(a, dtype(3)), a + 6)
    result = weighted(cuda.to_device(a), cuda.to_device(b[:, :1].copy()))
    assert isinstance(result, cuda.devicearray.DeviceNDArray)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.copy_to_host(), a + 2 * b[:, :1])
    out = cuda.device_array((3, 20), dtype)
    weighted(a, b, out=out)
    np.testing.assert_array_equal(out.copy_to_host(), a + 2 * b)


def test_vectorize_refuses_what_numba_gets_wrong():
    with pytest.raises(TypeError, match="No matching version"):
        weighted(np.ones(3, np.int64), np.ones(3, np.int64))
    with pytest.raises(ValueError, match="missing axes"):
        weighted(np.ones((3, 20)), np.ones(20))
    with pytest.raises(TypeError, match="needs the types"):
        cuda.vectorize(lambda a: a)
    with pytest.raises(ValueError, match="Unsupported target: cpu"):
        cuda.vectorize(["int32(int32)"], target="cpu")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100, 129])
def test_a_vectorized_function_reduces(size):
    values = np.arange(1, size + 1, dtype=np.int32)
    assert total.reduce(values) == total.reduce(cuda.to_device(values)) == values.sum()


@decorated(cuda.vectorize, "int32(int32, int32)")
def total(a, b):
    return a + b


@decorated(cuda.guvectorize, ["void(float32[:,:], float32[:,:], float32[:,:])"], "(m,n),(n,p)->(m,p)")
def product(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@decorated(cuda.guvectorize, ["(float64[:], float64, float64[:])"], "(n),()->(n)")
def scaled(a, factor, out):
    for i in range(a.shape[0]):
        out[i] = a[i] * factor


def test_guvectorize():
    rng = np.random.default_rng(4)
    a, b = rng.random((5, 3, 4), np.float32), rng.random((5, 4, 2), np.float32)
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-6)
    np.testing.assert_allclose(product(a, b[0]), a @ b[0], rtol=1e-6)
    result = product(cuda.to_device(a), cuda.to_device(b))
    np.testing.assert_allclose(result.copy_to_host(), a @ b, rtol=1e-6)
    rows = rng.random((6, 3))
    np.testing.assert_array_equal(scaled(rows, 2.0), rows * 2)
    np.testing.assert_array_equal(scaled(rows, np.arange(6.0)), rows * np.arange(6)[:, None])
    with pytest.raises(TypeError, match="types and layout"):
        cuda.guvectorize("(n)->(n)")
