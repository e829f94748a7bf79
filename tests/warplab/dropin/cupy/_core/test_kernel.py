"""`ElementwiseKernel` on the simulator, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.warplab.dropin.cupy.arrays import DTYPES, random_array
from warplab import profile, simulator
from warplab.compile.errors import CompileError
from warplab.dropin import cupy as cp

SHAPES = [(1,), (127,), (128,), (129,), (3, 5), (2, 1, 7), (4, 3, 2, 5), ()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_dtypes_copy_their_bits(dtype):
    x = random_array((257,), dtype, 1)
    copied = cp.ElementwiseKernel("T x", "T y", "y = x", "copy")(cp.asarray(x))
    assert copied.dtype == x.dtype
    assert copied.get().tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if np.dtype(d).kind != "b"])
def test_arithmetic_in_all_dtypes(dtype):
    x, y = (random_array((300,), dtype, seed) for seed in (2, 3))
    found = cp.ElementwiseKernel("T x, T y", "T z", "z = x * y - x", "multiply")(cp.asarray(x), cp.asarray(y)).get()
    with np.errstate(all="ignore"):
        if np.dtype(dtype).itemsize == 2 and np.dtype(dtype).kind in "fV":  # CuPy computes halves in float
            expected = (x.astype("f4") * y.astype("f4") - x.astype("f4")).astype(dtype)
        else:
            expected = x * y - x
    with np.errstate(all="ignore"):
        scale = (np.abs(x * y) + np.abs(x)).astype("f8")
        apart = np.abs(found.astype("c16") - expected.astype("c16"))
    wide = {"f4": 1e-6, "c8": 1e-6, "f8": 1e-14, "c16": 1e-14}.get(np.dtype(dtype).str[1:], 0)
    assert ((apart <= wide * scale) | (np.isnan(found) & np.isnan(expected)) | (found == expected)).all()


def test_arithmetic_of_bfloat16():
    x, y = (random_array((300,), ml_dtypes.bfloat16, seed) for seed in (2, 3))
    found = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")(cp.asarray(x), cp.asarray(y)).get()
    expected = (x.astype("f4") + y.astype("f4")).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found.astype("f4"), expected.astype("f4"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduce_dims", [True, False])
def test_shapes(shape, reduce_dims):
    x, y = (random_array(shape, "f8", seed) for seed in (4, 5))
    kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = x + 2 * y", "shapes", reduce_dims)
    found = kernel(cp.asarray(x), cp.asarray(y))
    assert found.shape == shape
    np.testing.assert_array_equal(found.get(), x + 2 * y)


@pytest.mark.parametrize(
    "view",
    [
        "x.T",
        "x[::-1, ::2]",
        "x[:, 1:3].T",
        "x[1]",
        "x.swapaxes(0, 2)",
        "x[..., None]",
        "x[:, :, 0]",
        "x.reshape(6, 20).T",
    ],
)
def test_views(view):
    x = random_array((4, 5, 6), "i4", 6)
    d = cp.asarray(x)  # noqa: F841 - in `view`
    part, expected = eval(view.replace("x", "d", 1)), eval(view)
    kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = x - y", "views")
    np.testing.assert_array_equal(kernel(part, part[..., :1]).get(), expected - expected[..., :1])
    out = cp.ones((*reversed(expected.shape),), "i4").T
    assert kernel(part, part, out) is out
    assert not out.get().any()


def test_broadcasting_and_scalars():
    x, y = random_array((4, 1), "f4", 7), random_array((3,), "i4", 8)
    kernel = cp.ElementwiseKernel("T x, U y, float32 s, int64 k", "float64 z", "z = x * y + s - k", "mixed")
    found = kernel(cp.asarray(x), cp.asarray(y), np.float32(0.5), 2)
    np.testing.assert_allclose(found.get(), x * y.astype("f4") + np.float32(0.5) - 2, rtol=1e-6)
    assert found.shape == (4, 3)


def test_raw_arrays_the_index_and_the_size():
    x = random_array((50,), "i8", 9)
    reverse = cp.ElementwiseKernel(
        "raw T x", "raw T y", "y[i] = x[_ind.size() - 1 - i] + n", "reverse", preamble="#define n 0"
    )
    y = cp.zeros(50, cp.int64)
    reverse(cp.asarray(x), y, size=50)
    np.testing.assert_array_equal(y.get(), x[::-1])
    stencil = cp.ElementwiseKernel(
        "T x, raw T all, int32 n", "T y", "y = (i ? all[i - 1] : 0) + x + (i + 1 < n ? all[i + 1] : 0)"
    )
    padded = np.pad(x, 1)
    found = stencil(cp.asarray(x), cp.asarray(x), 50)
    np.testing.assert_array_equal(found.get(), padded[:-2] + padded[1:-1] + padded[2:])
    grid = random_array((4, 6), "f4", 10)
    at = cp.ElementwiseKernel(
        "raw T x", "T y", "ptrdiff_t at[] = {i % 4, i / 4}; y = x[at] + x.shape()[1] * x.ndim", "at"
    )
    np.testing.assert_array_equal(at(cp.asarray(grid)[:, ::2], cp.empty(12, "f4")).get(), grid[:, ::2].T.ravel() + 6)


def test_what_surrounds_the_loop():
    kernel = cp.ElementwiseKernel(
        "T x",
        "T y",
        "y = scaled(x); sum += y;",
        "surrounded",
        preamble="template <typename T> __device__ T scaled(T x) { return FACTOR * x; }",
        loop_prep="T sum = 0",
        after_loop="if (_ind.size() < 0) __trap()",
        options=("-DFACTOR=3",),
    )
    np.testing.assert_array_equal(kernel(cp.arange(10)).get(), 3 * np.arange(10))


def test_complex_numbers_in_an_older_standard():
    """As cuSignal writes it."""
    turn = cp.ElementwiseKernel(
        "float64 x",
        "complex128 z",
        "double half{ x * 0.5 }; z = 2 * exp(thrust::complex<double>(0.0, half)) * 1.0f",
        "turn",
        options=("-std=c++11",),
    )
    x = random_array((20,), "f8", 12)
    np.testing.assert_allclose(turn(cp.asarray(x)).get(), 2 * np.exp(0.5j * x), rtol=1e-13)
    raw = """#include <cupy/complex.cuh>
    extern "C" __global__ void square(complex<float>* z) { z[threadIdx.x] = z[threadIdx.x] * z[threadIdx.x]; }"""
    z = cp.asarray(random_array((9,), "c8", 13))
    expected = z * z
    cp.RawKernel(raw, "square", ("-std=c++11",))((1,), (9,), (z,))
    cp.testing.assert_allclose(z, expected, rtol=1e-5)


def test_outputs():
    two = cp.ElementwiseKernel("T x", "T y, float64 z", "y = x; z = -x", "two")
    y, z = two(cp.arange(4))
    assert (y.tolist(), z.tolist()) == ([0, 1, 2, 3], [0.0, -1.0, -2.0, -3.0])
    assert cp.ElementwiseKernel("T x", "T y", "y = x", "none", no_return=True)(cp.arange(3)) is None
    (only,) = cp.ElementwiseKernel("T x", "T y", "y = x", "tuple", return_tuple=True)(cp.arange(3))
    assert only.tolist() == [0, 1, 2]
    assert two(cp.zeros((0, 3)))[0].shape == (0, 3)
    x = cp.arange(6.0)
    cp.ElementwiseKernel("", "T x", "x = x + 1", "in_place")(x)
    assert x.tolist() == [1, 2, 3, 4, 5, 6]


def test_checks_and_counters_see_the_snippet():
    past = cp.ElementwiseKernel("raw T x", "T y", "y = x[i + 1]", "past")
    with pytest.raises(simulator.IllegalAddress, match="past the end of array `x`") as caught:
        past(cp.arange(64), cp.empty(64, cp.int64))
    assert caught.value.kernel == "past"
    assert "y = x[i + 1]" in str(caught.value)
    race = cp.ElementwiseKernel("T x", "raw T sum", "sum[0] += x", "race")
    with pytest.raises(simulator.DataRace, match="array `sum`"):
        race(cp.arange(64), cp.zeros(1, cp.int64))
    added = cp.zeros(1, cp.int32)
    cp.ElementwiseKernel("T x", "raw T sum", "atomicAdd(&sum[0], x)", "added")(cp.arange(64, dtype=cp.int32), added)
    assert int(added[0]) == 2016
    with pytest.raises(simulator.UninitializedRead, match="array `x`"):
        cp.ElementwiseKernel("T x", "T y", "y = x", "unset")(cp.empty(8))
    with profile() as p:
        cp.ElementwiseKernel("T x", "T y", "y = x * x", "square")(cp.ones(1024, cp.float32))
    assert p.kernels == ["square"]
    assert (p[0].grid, p[0].block) == ((8, 1, 1), (128, 1, 1))
    assert p.counts.global_load_sectors == 128


def test_texture_arguments():
    texels = np.random.default_rng(11).random((4, 8), np.float32)
    form = cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, cp.cuda.runtime.cudaChannelFormatKindFloat)
    array = cp.cuda.texture.CUDAarray(form, 8, 4)
    array.copy_from(texels)
    clamp, point = cp.cuda.runtime.cudaAddressModeClamp, cp.cuda.runtime.cudaFilterModePoint
    description = cp.cuda.texture.TextureDescriptor((clamp, clamp), point, cp.cuda.runtime.cudaReadModeElementType)
    resource = cp.cuda.texture.ResourceDescriptor(cp.cuda.runtime.cudaResourceTypeArray, cuArr=array)
    texture = cp.cuda.texture.TextureObject(resource, description)
    kernel = cp.ElementwiseKernel("T x, U image", "T y", "y = tex2D<T>(image, x, 1)", "fetch")
    np.testing.assert_array_equal(kernel(cp.arange(8, dtype=cp.float32), texture).get(), texels[1])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: cp.ElementwiseKernel("T", "T y", "y = 1"), Exception, "Syntax error: T"),
        (lambda: cp.ElementwiseKernel("row T x", "T y", "y = 1"), Exception, 'Unknown keyword "row"'),
        (lambda: cp.ElementwiseKernel("T i", "T y", "y = i"), ValueError, "Can not use 'i' as a parameter name"),
        (lambda: cp.ElementwiseKernel("T x", "T y", "y = x", "a b"), ValueError, 'Invalid kernel name: "a b"'),
        (lambda: cp.ElementwiseKernel("quark x", "T y", "y = x"), TypeError, "quark"),
        (lambda: copy()(1), ValueError, "Loop size is undecided"),
        (lambda: copy()(cp.ones(3), cp.ones(3), 1), TypeError, "must be either 1 or 2 .with outputs., but given 3"),
        (lambda: copy()(np.ones(3)), TypeError, "Unsupported type .*ndarray"),
        (lambda: copy()(cp.ones(3), cp.ones(4)), ValueError, "could not be broadcast|Out shape is mismatched"),
        (lambda: copy()(cp.ones(3), cp.ones(3, "i4")), TypeError, "Type is mismatched. x float64 int32 T"),
        (lambda: copy()(cp.ones(3), 5), TypeError, "Output arguments type must be cupy.ndarray"),
        (lambda: copy()(cp.ones(3), size=3), ValueError, "Specified 'size' can be used only if all of the ndarray are"),
        (lambda: copy()(cp.ones(3), block_size=0), ValueError, "block_size must be greater than zero"),
        (lambda: copy()(cp.ones(3), blocks=1), TypeError, "Wrong arguments"),
        (lambda: cp.ElementwiseKernel("float32 x", "T y", "y = x")(cp.ones(3)), TypeError, "x float64 float32"),
        (lambda: cp.ElementwiseKernel("T x, U y", "T z", "z = x")(cp.ones(3), 1), TypeError, "type U of y is unknown"),
        (lambda: cp.ElementwiseKernel("raw T x", "raw T y", "y[i] = 1")(cp.ones(3), size=3), ValueError, None),
        (
            lambda: cp.ElementwiseKernel("T x", "T y", "y = z")(cp.ones(3)),
            CompileError,
            '"z" is undefined(.*\n)*.*y = z',
        ),
        (lambda: cp.ElementwiseKernel("T x", "T y", "y = x")(cp.ones(3, "M8[s]")), ValueError, "Unsupported dtype"),
    ],
)
def test_mistakes(make, error, message):
    if message is None:  # with a size, a raw output is made
        assert make().shape == (3,)
        return
    with pytest.raises(error, match=message):
        make()


def copy() -> cp.ElementwiseKernel:
    return cp.ElementwiseKernel("T x", "T y", "y = x", "copy")


def test_generated_code_can_be_read():
    kernel = copy()
    kernel(cp.ones(3))
    kernel(cp.ones(3, "i4"))
    assert list(kernel.cached_codes) == [(np.dtype("f8"),) * 2, (np.dtype("i4"),) * 2]
    assert "typedef int T;" in kernel.cached_code
    assert isinstance(cp.cuda.compiler.CompileException("x"), CompileError)
