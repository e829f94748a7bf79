"""The stand-in for numba.cuda beside numba.cuda itself, on a GPU: the same results, the same mistakes refused."""

import math

import numpy as np
import pytest
from numba import cuda as numba_cuda

from warplab.dropin import numba_cuda as cuda

pytestmark = pytest.mark.gpu
BOTH = [pytest.param(numba_cuda, id="gpu"), pytest.param(cuda, id="simulator")]


def add(a, b):
    return a + b


@pytest.mark.parametrize("size", [1, 100, 129, 5000, 100_003])
def test_reductions_of_floats_have_the_same_bits(size):
    values = np.random.default_rng(size).random(size, np.float32)
    assert cuda.reduce(add)(values, init=0.25) == numba_cuda.reduce(add)(values, init=0.25)


def draw(states, out):
    i = numba_cuda.grid(1)
    out[i, 0] = numba_cuda.random.xoroshiro128p_uniform_float32(states, i)
    out[i, 1] = numba_cuda.random.xoroshiro128p_uniform_float64(states, i)
    out[i, 2] = numba_cuda.random.xoroshiro128p_normal_float64(states, i)


def test_random_numbers_are_the_same():
    found = []
    for module in (numba_cuda, cuda):
        states, out = module.random.create_xoroshiro128p_states(256, seed=11), np.zeros((256, 3))
        module.jit(draw)[2, 128](states, out)
        found.append(out)
    np.testing.assert_array_equal(found[0][:, :2], found[1][:, :2])
    np.testing.assert_allclose(found[0][:, 2], found[1][:, 2], rtol=1e-6)


def half(x, out):
    i = numba_cuda.grid(1)
    out[i, 0] = x[i] * x[i] + x[i]
    out[i, 1] = x[i] / x[0] - x[1]
    out[i, 2] = math.sqrt(x[i])
    out[i, 3] = math.exp(x[i])


def test_half_precision_has_the_same_bits_but_for_exp_and_fusing():
    x, found = np.linspace(0.3, 9, 32).astype(np.float16), []
    for module in (numba_cuda, cuda):
        out = np.zeros((32, 4), np.float16)
        module.jit(half)[1, 32](x, out)
        found.append(out)
    np.testing.assert_array_equal(found[0][:, 1:3], found[1][:, 1:3])
    # ptxas may fuse the product and the sum: one rounding or two.
    wide = x.astype(np.float64)
    once, twice = (wide * wide + wide).astype(np.float16), x * x + x
    for products in (found[0][:, 0], found[1][:, 0]):
        assert ((products == once) | (products == twice)).all()
    np.testing.assert_allclose(found[0][:, 3].astype(float), found[1][:, 3].astype(float), rtol=2**-10)


def raises(x):
    i = numba_cuda.grid(1)
    if x[i] == 7:
        raise IndexError("seven")


@pytest.mark.parametrize("module", BOTH)
def test_debug_kernels_raise(module):
    x = np.ones(64, np.int32)
    x[40] = 7
    with pytest.raises(IndexError, match=r"tid=\[0, 0, 8\] ctaid=\[0, 0, 1\]: seven"):
        module.jit(debug=True, opt=False)(raises)[2, 32](x)


MISTAKES = {
    "copy of every other element to the device": (ValueError, lambda d, f: d[::2].copy_to_device(np.arange(5.0))),
    "copy of a reversed array": (NotImplementedError, lambda d, f: d[::-1].copy_to_host()),
    "copy between orders of axes": (ValueError, lambda d, f: f.copy_to_host(np.zeros((3, 4)))),
    "assignment of every other element": (ValueError, lambda d, f: d.__setitem__(slice(5), np.arange(10.0)[::2])),
    "assignment of a matrix": (ValueError, lambda d, f: d.__setitem__(slice(10), np.ones((1, 10)))),
    "copy of another dtype": (TypeError, lambda d, f: d.copy_to_device(np.arange(10))),
    "copy of another shape": (ValueError, lambda d, f: d.copy_to_device(np.arange(11.0))),
    "a reshape that copies": (NotImplementedError, lambda d, f: f.ravel()),
    "a transpose of three axes": (NotImplementedError, lambda d, f: d.reshape(1, 2, 5).T),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("module", BOTH)
def test_the_same_mistakes_are_refused(module, mistake):
    error, make = MISTAKES[mistake]
    with pytest.raises(error):
        make(module.to_device(np.arange(10.0)), module.to_device(np.asfortranarray(np.ones((3, 4)))))


@pytest.mark.parametrize("module", BOTH)
def test_arrays_like_others(module):
    cube = np.zeros((2, 3, 4), np.int16)
    for like in (cube, cube.T, cube.transpose(0, 2, 1), cube[:, ::2]):
        assert module.device_array_like(like).strides == np.empty_like(like).strides


def test_numba_repeats_the_first_element_of_an_array_with_fewer_axes():
    """This is why the stand-in refuses such an array."""

    @numba_cuda.vectorize(["float64(float64, float64)"])
    def weighted(a, b):
        return a + 2 * b

    matrix = np.arange(60.0).reshape(3, 20)
    np.testing.assert_array_equal(weighted(matrix, matrix[1]), matrix + 2 * matrix[1, 0])
