"""Lab 07's kernels on the active backend: right results, nothing written outside, bad input refused."""

import numpy as np
import pytest

from kernels.training import bias_gelu, reference
from tests.support.random_inputs import generator
from warplab import cp

SHAPES = ((1, 1), (2, 3), (3, 31), (7, 32), (8, 33), (9, 127), (64, 4), (65, 128), (129, 132), (200, 36))
GUARD = 32  # elements before and after an output


def guarded(shape):
    """(device array of `shape` full of NaN, function that gives it as NumPy's and checks what lies around it)."""
    size = int(np.prod(shape))
    whole = cp.asarray(np.full(size + 2 * GUARD, np.nan, np.float32))

    def read():
        found = cp.asnumpy(whole)
        assert np.isnan(found[:GUARD]).all(), "written before the array"
        assert np.isnan(found[GUARD + size :]).all(), "written behind the array"
        return found[GUARD : GUARD + size].reshape(shape)

    return whole[GUARD : GUARD + size].reshape(shape), read


def inputs(rows, columns):
    rng = generator()
    x, dy = (3 * rng.standard_normal((rows, columns), dtype=np.float32) for _ in range(2))
    return x, rng.standard_normal(columns, dtype=np.float32), dy


def fits(name, columns):
    return columns % 4 == 0 or not name.endswith("float4")


def cases(names):
    return [(name, shape) for name in names for shape in SHAPES if fits(name, shape[1])]


@pytest.mark.parametrize(("name", "shape"), cases(bias_gelu.FORWARD))
def test_forward_is_numpys(name, shape):
    x, bias, _ = inputs(*shape)
    y, read = guarded(shape)
    bias_gelu.forward(cp.asarray(x), cp.asarray(bias), y, name)
    np.testing.assert_allclose(read(), reference.gelu(x.astype(float) + bias), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "shape"), cases(bias_gelu.BACKWARD))
def test_backward_is_numpys(name, shape):
    x, bias, dy = inputs(*shape)
    (dx, read_dx), (dbias, read_dbias) = guarded(shape), guarded(shape[1:])
    bias_gelu.backward(*map(cp.asarray, (x, bias, dy)), dx, dbias, name)
    expected_dx, expected_dbias = reference.backward(x.astype(float), bias.astype(float), dy.astype(float))
    np.testing.assert_allclose(read_dx(), expected_dx, rtol=5e-5, atol=2e-5)
    # Each of the `rows` terms may be off by rounding.
    np.testing.assert_allclose(read_dbias(), expected_dbias, rtol=1e-4, atol=5e-5 * shape[0] ** 0.5)


def test_the_slope_is_the_derivative():
    z, step = np.linspace(-6, 6, 1001), 1e-6
    numeric = (reference.gelu(z + step) - reference.gelu(z - step)) / (2 * step)
    np.testing.assert_allclose(reference.gelu_slope(z), numeric, atol=1e-8)


@pytest.mark.parametrize("name", bias_gelu.FORWARD)
def test_an_empty_matrix_is_no_launch(name):
    bias_gelu.forward(cp.zeros((0, 4), np.float32), cp.zeros(4, np.float32), cp.zeros((0, 4), np.float32), name)


def test_in_place():
    x, bias, _ = inputs(33, 36)
    there = cp.asarray(x)
    bias_gelu.forward(there, cp.asarray(bias), there, "cuda")
    np.testing.assert_allclose(cp.asnumpy(there), reference.gelu(x.astype(float) + bias), rtol=2e-5, atol=2e-6)


def test_large_values_stay_finite():
    x = np.array([[-1e30, -1e4, 1e4, 1e18]], np.float32)
    for name in bias_gelu.FORWARD:
        found = cp.asnumpy(
            bias_gelu.forward(cp.asarray(x), cp.zeros(4, np.float32), cp.zeros_like(cp.asarray(x)), name)
        )
        np.testing.assert_allclose(found, [[0, 0, 1e4, 1e18]], rtol=1e-6)


def test_a_tall_matrix_fits_the_grid():
    kernel = bias_gelu.FORWARD["cuda"]
    (_, high), each = bias_gelu.layout(kernel, 2**24, 32)
    assert high <= bias_gelu.MOST_BLOCKS_Y
    assert high * each >= 2**24


def test_what_does_not_fit_is_refused():
    x, bias = cp.zeros((4, 6), np.float32), cp.zeros(6, np.float32)
    with pytest.raises(ValueError, match="there is no kernel 'gelu'; choose one of numba, cuda, cuda_float4"):
        bias_gelu.forward(x, bias, x, "gelu")
    with pytest.raises(ValueError, match="x has 6 columns; cuda_float4 takes a multiple of 4"):
        bias_gelu.forward(x, bias, x, "cuda_float4")
    with pytest.raises(ValueError, match=r"bias has shape \(4,\); it must be \(6,\)"):
        bias_gelu.forward(x, cp.zeros(4, np.float32), x)
    with pytest.raises(ValueError, match=r"dy has shape \(2, 6\); it must be \(4, 6\)"):
        bias_gelu.backward(x, bias, cp.zeros((2, 6), np.float32), x, cp.zeros(6, np.float32))
    with pytest.raises(ValueError, match="dbias is bias itself"):
        bias_gelu.backward(x, bias, x, x, bias)
    with pytest.raises(TypeError, match="x is a ndarray in host memory"):
        bias_gelu.forward(np.zeros((4, 6), np.float32), bias, x)
