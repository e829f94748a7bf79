"""`ReductionKernel` on the simulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.warplab.dropin.cupy.arrays import DTYPES, random_array
from warplab import profile, simulator
from warplab.compile.errors import CompileError
from warplab.dropin import cupy as cp

SHAPES = [(1,), (511,), (513,), (3, 5), (2, 1, 7), (4, 3, 2, 5), (1, 1), (70, 33)]


def total() -> cp.ReductionKernel:
    return cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")


@pytest.mark.parametrize("dtype", [d for d in DTYPES if np.dtype(d).kind in "iu"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), (1, 2), -1, (2, 0, 1)])
def test_sums_of_integers(dtype, axis):
    x = random_array((9, 10, 11), dtype, 1)
    for keepdims in (False, True):
        found = total()(cp.asarray(x), axis=axis, keepdims=keepdims)
        expected = x.sum(axis, dtype, keepdims=keepdims)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found.get(), expected)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_sums_of_floats(dtype):
    x = random_array((7, 13), dtype, 2)
    for axis in (None, 0, 1):
        found, exact = total()(cp.asarray(x), axis=axis).get(), x.astype("c16").sum(axis)
        bound = np.abs(x.astype("c16")).sum(axis) * {"f2": 2e-2, "f4": 1e-5, "c8": 1e-5}.get(dtype, 1e-13)
        assert (np.abs(found - exact) <= bound).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduce_dims", [True, False])
def test_shapes_and_orders(shape, reduce_dims):
    kernel = cp.ReductionKernel(
        "T x", "T y", "x", "max(a, b)", "y = a", "-2147483647 - 1", "most", reduce_dims=reduce_dims
    )
    x = random_array(shape, "i4", 3)
    d = cp.asarray(x)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(kernel(d, axis=axis).get(), x.max(axis))
        np.testing.assert_array_equal(kernel(d.T, axis=axis).get(), x.T.max(axis))
        np.testing.assert_array_equal(kernel(d[::-1], axis=axis).get(), x[::-1].max(axis))


def test_several_inputs_and_raw_ones():
    x, y = random_array((6, 8), "f8", 4), random_array((8,), "f8", 5)
    dot = cp.ReductionKernel("T x, T y, T scale", "T z", "scale * x * y", "a + b", "z = a", "0", "dot")
    np.testing.assert_allclose(dot(cp.asarray(x), cp.asarray(y), 2.0, axis=1).get(), 2 * x @ y, rtol=1e-12)
    norm = cp.ReductionKernel("T x", "float64 y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
    assert float(norm(cp.arange(5))) == np.sqrt(30)
    picked = cp.ReductionKernel("int64 k, raw T x", "T y", "x[k] * _in_ind.size()", "a + b", "y = a", "0", "picked")
    assert float(picked(cp.asarray([0, 2, 2]), cp.asarray([1.0, 5.0, 7.0]))) == 45
    place = cp.ReductionKernel("T x", "int64 k", "x > 2 ? _J : 0", "max(a, b)", "k = a", "-1", "place", "long long")
    assert int(place(cp.asarray([3.0, 1.0, 9.0, 2.0]))) == 2


def test_struct_as_reduce_type():
    preamble = """struct Best {
        double value; int index;
        __device__ Best(double v = -1e300, int k = -1) : value(v), index(k) {}
    };
    __device__ Best better(Best a, Best b) { return b.value > a.value ? b : a; }"""
    kernel = cp.ReductionKernel(
        "T x", "int32 k", "Best(x, _J)", "better(a, b)", "k = a.index", "", "argmax", "Best", preamble=preamble
    )
    x = random_array((4, 24), "f8", 6)
    np.testing.assert_array_equal(kernel(cp.asarray(x), axis=1).get(), x.argmax(1))


def test_outputs():
    x, out = cp.arange(12.0).reshape(3, 4), cp.empty(4)
    assert total()(x, out, axis=0) is out
    assert out.tolist() == [12, 15, 18, 21]
    assert total()(x, out=out, axis=0) is out
    assert total()(cp.zeros((0, 3)), axis=0).tolist() == [0, 0, 0]
    assert total()(cp.zeros((0, 3)), axis=1).shape == (0,)
    assert total()(cp.asarray(7)).shape == ()


def test_checks_and_counters_see_the_expressions():
    with pytest.raises(simulator.UninitializedRead, match="array `x`"):
        total()(cp.empty(100))
    past = cp.ReductionKernel("int64 k, raw T x", "T y", "x[k + 1]", "a + b", "y = a", "0", "past")
    with pytest.raises(simulator.IllegalAddress, match="past the end of array `x`"):
        past(cp.arange(8), cp.ones(8))
    with profile() as p:
        total()(cp.ones(4096, cp.float32))
    assert p.kernels == ["total"]
    assert p[0].block == (512, 1, 1)
    assert p.counts.global_load_sectors == 512


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: total()(cp.ones(3), axis=1), ValueError, "axis 1 is out of bounds"),
        (lambda: total()(cp.ones((3, 3)), axis=(0, 0)), ValueError, "repeated axis|duplicate value"),
        (lambda: total()(), TypeError, "Wrong number of arguments for total"),
        (lambda: total()(cp.ones(3), dtype=1), TypeError, "Wrong arguments"),
        (lambda: total()(3), ValueError, "Loop size is undecided"),
        (lambda: total()(cp.ones(3), out=cp.ones(3)), ValueError, "Out shape is mismatched"),
        (lambda: total()(cp.ones(3), cp.ones(()), out=cp.ones(())), ValueError, "cannot specify 'out' as both"),
        (lambda: total()(cp.ones(3), cp.ones((), "f4")), TypeError, "Type is mismatched. x float64 float32 T"),
        (
            lambda: nameless()(cp.ones(0)),
            ValueError,
            "zero-size array to reduction operation first which has no identity",
        ),
        (
            lambda: cp.ReductionKernel("T x", "T y", "x", "a +", "y = a", "0")(cp.ones(3)),
            CompileError,
            "expected an expr",
        ),
        (
            lambda: cp.ReductionKernel("T x", "T y", "z", "a + b", "y = a", "0")(cp.ones(3)),
            CompileError,
            '"z" is undefined',
        ),
        (
            lambda: cp.ReductionKernel("T x", "T y", "x", "a", "y = a", "0", "1st"),
            ValueError,
            'Invalid kernel name: "1st"',
        ),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()


def nameless() -> cp.ReductionKernel:
    return cp.ReductionKernel("T x", "T y", "x", "a", "y = a", None, "first")
