"""NV12 to normalised planes on the active backend: NumPy's result, nothing written outside, bad input refused."""

import numpy as np
import pytest

from kernels.serving.overlap.streams.preprocess import KERNELS, Preprocess, by_numpy, launches
from tests.support.random_inputs import generator
from warplab import cp

SIZES = [
    ((2, 2), (1, 1)),
    ((2, 2), (5, 33)),
    ((64, 96), (64, 96)),
    ((64, 96), (32, 48)),
    ((36, 40), (9, 7)),
    ((20, 34), (45, 31)),
    ((48, 70), (17, 65)),
]
GUARD = 64


def _frame(height, width, rng):
    return rng.integers(0, 256, (height * 3 // 2, width), np.uint8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("frame", "size"), SIZES)
def test_the_planes_are_numpys(kernel, frame, size):
    nv12 = _frame(*frame, generator())
    count = 3 * size[0] * size[1]
    whole = cp.asarray(np.full(count + 2 * GUARD, np.nan, np.float32))
    Preprocess(kernel=kernel)(cp.asarray(nv12), whole[GUARD : GUARD + count].reshape(3, *size))
    found = cp.asnumpy(whole)
    np.testing.assert_allclose(found[GUARD:-GUARD].reshape(3, *size), by_numpy(nv12, *size), rtol=0, atol=3e-5)
    assert np.isnan(found[:GUARD]).all()
    assert np.isnan(found[-GUARD:]).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_mean_and_std_are_each_channels_own(kernel):
    nv12, mean, std = _frame(16, 32, generator()), (0.1, 0.5, 0.9), (0.5, 1, 2)
    out = cp.zeros((3, 16, 32), np.float32)
    Preprocess(mean, std, kernel)(cp.asarray(nv12), out)
    np.testing.assert_allclose(cp.asnumpy(out), by_numpy(nv12, 16, 32, mean, std), rtol=0, atol=3e-5)


@pytest.mark.gpu
def test_rows_may_lie_further_apart_than_they_are_long():
    """As a decoder's do. (The drop-in's arrays have no strides of their own.)"""
    wide = cp.asarray(_frame(16, 64, generator()))
    out = cp.zeros((3, 16, 32), np.float32)
    Preprocess()(wide[:, :32], out)
    np.testing.assert_allclose(cp.asnumpy(out), by_numpy(cp.asnumpy(wide)[:, :32], 16, 32), rtol=0, atol=3e-5)


@pytest.mark.parametrize(
    ("yuv", "rgb"),
    [
        ((16, 128, 128), (0, 0, 0)),
        ((235, 128, 128), (255, 255, 255)),
        ((81, 90, 240), (254, 0, 0)),
        ((145, 54, 34), (0, 255, 1)),
        ((41, 240, 110), (0, 0, 255)),
    ],
    ids=["black", "white", "red", "green", "blue"],
)
def test_colours_are_those_of_bt_601(yuv, rgb):
    """Colour bars of ITU-R BT.601, eight bits."""
    nv12 = np.concatenate([np.full((4, 4), yuv[0]), np.tile(yuv[1:], (2, 2))]).astype(np.uint8)
    out = cp.zeros((3, 4, 4), np.float32)
    Preprocess((0, 0, 0), (1, 1, 1))(cp.asarray(nv12), out)
    np.testing.assert_allclose(255 * cp.asnumpy(out)[:, 1, 1], rgb, atol=1.1)


def test_what_does_not_fit_is_refused():
    prepare, out = Preprocess(), cp.zeros((3, 4, 4), np.float32)
    frame = cp.zeros((6, 4), np.uint8)
    with pytest.raises(TypeError, match="nv12 is a ndarray in host memory"):
        prepare(np.zeros((6, 4), np.uint8), out)
    with pytest.raises(ValueError, match=r"nv12 is float32 of shape \(6, 4\); a frame is uint8 with two axes"):
        prepare(cp.zeros((6, 4), np.float32), out)
    for shape in ((5, 4), (6, 3), (0, 4)):
        with pytest.raises(ValueError, match=r"a frame is \(height \* 3 / 2, width\), with even numbers"):
            prepare(cp.zeros(shape, np.uint8), out)
    with pytest.raises(ValueError, match=r"out has shape \(1, 4, 4\); it must be \(3, rows, columns\)"):
        prepare(frame, cp.zeros((1, 4, 4), np.float32))
    with pytest.raises(ValueError, match="out is float64"):
        prepare(frame, cp.zeros((3, 4, 4), np.float64))
    with pytest.raises(ValueError, match="there is no kernel 'fast'"):
        Preprocess(kernel="fast")
    with pytest.raises(ValueError, match="give three numbers each"):
        Preprocess(std=(1, 0, 1))


def test_an_empty_output_is_no_launch():
    assert Preprocess()(cp.zeros((6, 4), np.uint8), cp.zeros((3, 0, 4), np.float32)).size == 0


def test_launches_to_compare_are_of_both_kernels():
    assert {launch.name.split(",")[0] for launch in launches()} == set(KERNELS)
