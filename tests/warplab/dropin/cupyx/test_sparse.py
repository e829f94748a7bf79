"""cupyx.scipy.sparse: what SciPy computes, with parts that kernels can be given."""

import numpy as np
import pytest
import scipy.sparse

from warplab import cp
from warplab.dropin import cupyx

SEED = 28
sparse = cupyx.scipy.sparse
KINDS = ("csr", "csc", "coo")


def matrix(kind: str, dtype: str = "f4", shape=(40, 30)):
    rng = np.random.default_rng(SEED)
    return scipy.sparse.random(*shape, 0.2, kind, rng=rng, data_rvs=lambda n: rng.uniform(1, 2, n)).astype(dtype)


def on_device(host):
    return getattr(sparse, f"{host.format}_matrix")(host)


def same(found, wanted) -> None:
    if scipy.sparse.issparse(wanted):
        assert type(found).__name__ == type(wanted).__name__
        assert found.dtype == wanted.dtype
        found, wanted = found.toarray(), wanted.toarray()
    assert isinstance(found, cp.ndarray)
    np.testing.assert_array_equal(found.get(), np.asarray(wanted))
    assert found.dtype == wanted.dtype


CALLS = {
    "toarray": lambda m, x: m.toarray(),
    "transposed": lambda m, x: m.T,
    "tocsc": lambda m, x: m.tocsc(),
    "tocoo": lambda m, x: m.tocoo(),
    "times an array": lambda m, x: m @ x,
    "dot": lambda m, x: m.dot(x),
    "product": lambda m, x: m.T * m,
    "array times": lambda m, x: x.T @ m.T,
    "sum": lambda m, x: m.sum(),
    "sum of rows": lambda m, x: m.sum(axis=1),
    "mean of columns": lambda m, x: m.mean(axis=0),
    "multiply": lambda m, x: m.multiply(m),
    "scaled": lambda m, x: 2 * m - m / 4,
    "greater": lambda m, x: m > 1.5,
    "sqrt": lambda m, x: m.sqrt(),
    "astype": lambda m, x: m.astype("f8"),
    "a row": lambda m, x: m.tocsr()[3],
    "an element": lambda m, x: m.tocsr()[0, 0],
    "rows": lambda m, x: m.tocsr()[2:9].tocsr(),
    "the largest of rows": lambda m, x: m.max(axis=1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_what_scipy_says(call, kind):
    host = matrix(kind)
    x = np.random.default_rng(SEED).random((30, 3), np.float32)
    same(CALLS[call](on_device(host), cp.asarray(x)), CALLS[call](host, x))


def test_rows_of_given_numbers():
    host = matrix("csr")
    same(on_device(host)[cp.asarray([5, 1, 1])], host[[5, 1, 1]])
    mask = np.arange(40) % 3 == 0
    same(on_device(host)[cp.asarray(mask)], host[mask])


SPMV = r"""
extern "C" __global__ void spmv(const int* indptr, const int* indices, const float* data, const float* x, float* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= 40) return;
  float sum = 0;
  for (int k = indptr[row]; k < indptr[row + 1]; k++) sum += data[k] * x[indices[k]];
  y[row] = sum;
}
"""


def test_kernels_are_given_its_parts_and_may_change_them():
    host = matrix("csr")
    m, x, y = on_device(host), cp.arange(30, dtype=cp.float32), cp.empty(40, cp.float32)
    cp.RawKernel(SPMV, "spmv")((2,), (32,), (m.indptr, m.indices, m.data, x, y))
    np.testing.assert_allclose(y.get(), host @ x.get(), rtol=1e-6)
    m.data[:] = 1
    assert float(m.sum()) == host.nnz
    m.data = cp.full(host.nnz, 3, cp.float32)
    assert float(m.sum()) == 3 * host.nnz


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_made_of_device_arrays_it_shares_their_memory(kind):
    host = matrix(kind)
    data, indices, indptr = map(cp.asarray, (host.data, host.indices, host.indptr))
    m = getattr(sparse, f"{kind}_matrix")((data, indices, indptr), shape=host.shape)
    same(m, host)
    data *= 2
    same(m, host * 2)
    coo = host.tocoo()
    same(sparse.coo_matrix((cp.asarray(coo.data), (cp.asarray(coo.row), cp.asarray(coo.col))), host.shape), coo)
    same(sparse.csr_matrix(cp.asarray(host.toarray())), scipy.sparse.csr_matrix(host.toarray()))


def test_in_place():
    rows, columns = np.array([2, 0, 2, 1]), np.array([1, 1, 1, 0])
    host = scipy.sparse.coo_matrix((np.array([1, 0, 3, 4], np.float32), (rows, columns)), (3, 2)).tocsr()
    m = on_device(host)
    m.eliminate_zeros()
    m.sum_duplicates()
    m.sort_indices()
    assert (m.nnz, m.data.tolist(), m.indices.tolist()) == (2, [4, 4], [0, 1])
    m[0, 0] = 5
    assert m.toarray().tolist() == [[5, 0], [4, 0], [0, 4]]
    assert host.nnz == 3


def test_functions_and_answers():
    host, x = matrix("csr", "f8", (20, 20)), np.arange(20.0)
    host = (host + 40 * scipy.sparse.identity(20)).tocsr()
    m = on_device(host)
    same(sparse.hstack([m, m], format="csr"), scipy.sparse.hstack([host, host], "csr"))
    same(sparse.eye(4, format="csr"), scipy.sparse.eye(4, format="csr"))
    same(sparse.diags(cp.asarray(x)), scipy.sparse.diags(x))
    found = sparse.linalg.spsolve(m.tocsc(), cp.asarray(x))
    np.testing.assert_allclose(host @ found.get(), x, rtol=1e-12, atol=1e-12)
    assert sparse.issparse(m)
    assert sparse.isspmatrix_csr(m)
    assert not sparse.isspmatrix_csc(m)
    assert not sparse.issparse(host)
    assert (m.shape, m.nnz, m.format) == ((20, 20), host.nnz, "csr")
    assert scipy.sparse.issparse(m.get())
    assert cupyx.scipy.get_array_module(m) is cupyx.scipy


def test_what_is_refused():
    m = on_device(matrix("csr"))
    with pytest.raises(AttributeError, match=r"csr_matrix.tolil is not on the simulator; get\(\) copies"):
        m.tolil()
    with pytest.raises(AttributeError, match=r"sparse.csr_array is not on the simulator.*get\(\) copies a matrix"):
        _ = sparse.csr_array
    with pytest.raises(AttributeError, match="CuPy has none of that name"):
        _ = sparse.lil_matrix
    with pytest.raises(ValueError, match="Only bool, float32, float64, complex64 and complex128 are supported"):
        on_device(matrix("csr").astype("i4"))
    with pytest.raises(TypeError, match="make it a device array"):
        m @ np.ones(30, np.float32)
