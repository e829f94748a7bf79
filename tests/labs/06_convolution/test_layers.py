"""Pooling, softmax, LRN, dropout and batch normalisation on the active backend, against float64."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from kernels.convolution import batch_norm, convolve, dropout, layer_reference, lrn, pooling, softmax
from kernels.convolution.geometry import Convolution
from tests.support.random_inputs import generator
from warplab import cp, profile
from warplab.hardware import backend

GUARD = 64  # elements before and after the result
TYPES = ("float16", "float32")
LAYOUTS = ("NCHW", "NHWC")
EXACT = {"float16": 2.0**-11, "float32": 2.0**-24}  # of a result rounded once


def random(shape, dtype, low=-1, high=1):
    return generator().uniform(low, high, shape).astype(dtype)


def shaped(n, c, h, w, layout):
    return (n, c, h, w) if layout == "NCHW" else (n, h, w, c)


def guarded(function, shape, dtype, offset=0):
    """What function(out=...) computes into poisoned memory between guard bands."""
    begin, count = GUARD + offset, math.prod(shape)
    poison = np.nan if np.dtype(dtype).kind == "f" else 251
    whole = cp.asarray(np.full(begin + count + GUARD, poison, dtype))
    out = whole[begin : begin + count].reshape(shape)
    function(out=out)
    found = cp.asnumpy(whole)
    for part in (found[:begin], found[begin + count :]):
        np.testing.assert_array_equal(part, np.full(part.shape, poison, dtype), "written outside the result")
    return found[begin : begin + count].reshape(shape)


def near(found, exact, size, steps=8):
    """Is each element as near as `steps` roundings of float32 numbers of such `size` make it, rounded once more?"""
    bound = steps * 2.0**-24 * size + EXACT[found.dtype.name] * abs(exact) + 2.0**-24
    difference = abs(found.astype(np.float64) - exact)
    return bool((difference <= bound).all())


# -- pooling -----------------------------------------------------------------------------------------------------------

# n, c, h, w; window, stride, padding
POOLS = (
    ((1, 1, 1, 1), 1, 1, 0),
    ((2, 3, 5, 7), 3, 2, 1),
    ((1, 16, 8, 9), (3, 3), (2, 2), (1, 1)),
    ((2, 8, 6, 6), 2, None, 0),
    ((1, 24, 9, 5), (2, 4), (3, 1), (1, 2)),
    ((1, 5, 7, 6), (3, 2), (4, 5), 0),
    ((3, 8, 7, 7), 7, 1, 0),
    ((1, 64, 4, 4), 3, 1, 2),
)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_maximum_and_its_gradient(dtype, layout, offset):
    for sizes, window, stride, padding in POOLS:
        x = random(shaped(*sizes, layout), dtype)
        conv = pooling.windows(x.shape, window, stride, padding, layout)
        y, places = layer_reference.maximum(x, conv, layout)
        index = cp.asarray(np.full(y.shape, 251, np.uint8))
        device = cp.asarray(x)
        options = {"window": window, "stride": stride, "padding": padding, "layout": layout}
        found = guarded(partial(pooling.maximum, device, index=index, **options), y.shape, dtype, offset)
        np.testing.assert_array_equal(found, y)
        np.testing.assert_array_equal(cp.asnumpy(index), places)
        dy = random(y.shape, dtype)
        exact, size = (layer_reference.maximum_backward(d, places, conv, layout) for d in (dy, abs(dy)))
        grad = cp.asarray(dy)
        found = guarded(partial(pooling.maximum_backward, grad, index, x.shape, **options), x.shape, dtype, offset)
        assert near(found, exact, size)


@pytest.mark.parametrize("count_padding", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_average_and_its_gradient(dtype, layout, count_padding):
    for sizes, window, stride, padding in POOLS:
        x = random(shaped(*sizes, layout), dtype)
        conv = pooling.windows(x.shape, window, stride, padding, layout)
        exact, size = (layer_reference.average(a, conv, layout, count_padding) for a in (x, abs(x)))
        options = {"window": window, "stride": stride, "padding": padding, "layout": layout}
        options["count_padding"] = count_padding
        device = cp.asarray(x)
        found = guarded(partial(pooling.average, device, **options), exact.shape, dtype)
        assert near(found, exact, size, conv.r * conv.s + 2)
        dy = random(exact.shape, dtype)
        exact, size = (layer_reference.average_backward(d, conv, layout, count_padding) for d in (dy, abs(dy)))
        grad = cp.asarray(dy)
        found = guarded(partial(pooling.average_backward, grad, x.shape, **options), x.shape, dtype)
        assert near(found, exact, size, conv.r * conv.s + 2)


def test_of_equal_elements_the_first_is_the_maximum_and_nan_wins():
    x = np.zeros((1, 1, 2, 4), np.float32)
    x[0, 0, 1, 2:] = np.nan, 1
    index = cp.zeros((1, 1, 1, 2), np.uint8)
    y = cp.asnumpy(pooling.maximum(cp.asarray(x), 2, index=index))
    assert y[0, 0, 0, 0] == 0
    assert np.isnan(y[0, 0, 0, 1])
    assert cp.asnumpy(index).tolist() == [[[[0, 2]]]]
    lowest = np.full((1, 1, 3, 3), -np.inf, np.float32)
    pooling.maximum(cp.asarray(lowest), 3, 1, 1, index=(index := cp.zeros((1, 1, 3, 3), np.uint8)))
    assert cp.asnumpy(index)[0, 0].tolist() == [[4, 3, 3], [1, 0, 0], [1, 0, 0]], "the first inside the image"


def test_pooling_refuses_what_does_not_fit():
    x = cp.zeros((1, 2, 4, 4), np.float32)
    for arguments, options, error, message in (
        ((np.zeros((1, 2, 4, 4), np.float32), 2), {}, TypeError, "x is a ndarray in host memory"),
        ((x.reshape(2, 16), 2), {}, ValueError, r"x has shape \(2, 16\); it must have the four axes NCHW"),
        ((x, 0), {}, ValueError, "window is 0; it must be two whole numbers, at least 1"),
        ((x, 2, 1, 2), {}, ValueError, r"padding is \(2, 2\) and the window \(2, 2\); padding must be less"),
        ((x, 5), {}, ValueError, "no window fits"),
        ((x, 2), {"layout": "CHWN"}, ValueError, "there is no layout 'CHWN'"),
        ((x, 2), {"out": cp.zeros((1, 2, 2, 3), np.float32)}, ValueError, r"out has shape \(1, 2, 2, 3\); it must be"),
        ((x, 2), {"index": cp.zeros((1, 2, 2, 2), np.int32)}, ValueError, "index is int32; the kernel takes uint8"),
        ((x, 2), {"out": x.reshape(-1)[:8].reshape(1, 2, 2, 2)}, ValueError, "x and out overlap"),
    ):
        with pytest.raises(error, match=message):
            pooling.maximum(*arguments, **options)
    large = cp.zeros((1, 1, 16, 16), np.float32)
    with pytest.raises(ValueError, match="a window of 16 × 16 has more places than a byte holds; 255 is the most"):
        pooling.maximum(large, 16, index=cp.zeros((1, 1, 1, 1), np.uint8))
    with pytest.raises(ValueError, match=r"dy has shape \(1, 2, 4, 4\); it must be \(1, 2, 2, 2\)"):
        pooling.average_backward(x, (1, 2, 4, 4), 2)
    with pytest.raises(ValueError, match="x is float64; the kernel takes float16 or float32"):
        pooling.average(cp.zeros((1, 1, 2, 2)), 2)


# -- softmax -----------------------------------------------------------------------------------------------------------

COLUMNS = (1, 2, 31, 32, 33, 127, 128, 129, 256, 1000, 1024, 1025, 2056, 5003, 8195)


@pytest.mark.parametrize("dtype", TYPES)
def test_softmax_and_its_gradient(dtype):
    for columns, rows in itertools.product(COLUMNS, (1, 5)):
        x = random((rows, columns), dtype, -20, 20)
        exact = layer_reference.softmax(x)
        device = cp.asarray(x)
        found = guarded(partial(softmax.softmax, device), x.shape, dtype)
        assert near(found, exact, exact, 64 + math.log2(columns)), columns
        y, dy = exact.astype(dtype), random(x.shape, dtype)
        exact = layer_reference.softmax_backward(y, dy)
        size = abs(y.astype(np.float64)) * (abs(dy) + abs(y * dy).sum(axis=-1, keepdims=True))
        y, dy = cp.asarray(y), cp.asarray(dy)
        found = guarded(partial(softmax.softmax_backward, y, dy), x.shape, dtype)
        assert near(found, exact, size, 16 + columns / 32), columns


@pytest.mark.parametrize("columns", [40, 1030, 8195])
def test_softmax_of_large_and_of_masked_elements(columns):
    x = np.full((3, columns), -np.inf, np.float32)
    x[0, 5:7] = 3e38
    x[1] = np.arange(columns) * -1e4
    found = cp.asnumpy(softmax.softmax(cp.asarray(x)))
    np.testing.assert_array_equal(found[0], np.where(np.isin(np.arange(columns), (5, 6)), np.float32(0.5), 0))
    np.testing.assert_array_equal(found[1], np.arange(columns) == 0)
    assert np.isnan(found[2]).all()


def test_softmax_of_other_shapes_and_what_it_refuses():
    x = random((2, 3, 4, 10), np.float32)
    np.testing.assert_allclose(cp.asnumpy(softmax.softmax(cp.asarray(x))), layer_reference.softmax(x), rtol=1e-5)
    assert softmax.softmax(cp.zeros((0, 5), np.float32)).shape == (0, 5)
    assert softmax.softmax(cp.zeros((5, 0), np.float32)).shape == (5, 0)
    with pytest.raises(ValueError, match="x is a single number"):
        softmax.softmax(cp.asarray(np.float32(3)))
    with pytest.raises(ValueError, match="y is float32 and dy float16; all must be of one type"):
        softmax.softmax_backward(cp.zeros(4, np.float32), cp.zeros(4, np.float16))
    with pytest.raises(ValueError, match=r"dy has shape \(5,\); it must be \(4,\)"):
        softmax.softmax_backward(cp.zeros(4, np.float32), cp.zeros(5, np.float32))


def test_softmax_reads_a_row_once_in_whole_sectors():
    if backend.name() != "simulator":
        pytest.skip("the simulator counts")
    x = cp.asarray(random((64, 512), np.float16))
    with profile() as p:
        softmax.softmax(x)
    assert p[0].counts.global_load_sectors == p[0].counts.global_store_sectors == 64 * 512 * 2 // 32


# -- local response normalisation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_lrn_and_its_gradient(dtype, layout):
    for sizes, size, alpha, beta, k in (
        ((2, 7, 3, 5), 5, 1e-4, 0.75, 2.0),
        ((1, 33, 4, 3), 5, 0.5, 0.75, 1.0),
        ((1, 3, 2, 2), 7, 0.3, 0.5, 0.5),
        ((2, 1, 1, 33), 1, 1.0, 1.0, 1.0),
    ):
        x, dy = (random(shaped(*sizes, layout), dtype, -3, 3) for _ in range(2))
        y, s = layer_reference.lrn(x, layout, size, alpha, beta, k)
        device = cp.asarray(x)
        scale = cp.asarray(np.full(x.shape, np.nan, np.float32))
        options = {"size": size, "alpha": alpha, "beta": beta, "layout": layout}
        found = guarded(partial(lrn.lrn, device, k=k, scale=scale, **options), x.shape, dtype)
        assert near(found, y, abs(y), 32)
        np.testing.assert_allclose(cp.asnumpy(scale), s, rtol=1e-6)
        np.testing.assert_array_equal(cp.asnumpy(lrn.lrn(device, k=k, **options)), found)
        exact, parts = layer_reference.lrn_backward(x, found, dy, s, layout, size, alpha, beta)
        arrays = [cp.asarray(a) for a in (x, found, dy)]
        found = guarded(partial(lrn.lrn_backward, *arrays, scale, **options), x.shape, dtype)
        assert near(found, exact, parts, 64)


def test_lrn_is_alexnets_by_default_and_refuses_what_does_not_fit():
    x = random((1, 9, 2, 2), np.float32, -9, 9)
    np.testing.assert_allclose(
        cp.asnumpy(lrn.lrn(cp.asarray(x))), layer_reference.lrn(x, "NCHW", 5, 1e-4, 0.75, 2.0)[0], rtol=1e-5
    )
    for size in (0, 4, 2.5):
        with pytest.raises(ValueError, match="it must be an odd whole number"):
            lrn.lrn(cp.asarray(x), size)
    with pytest.raises(ValueError, match="k must be above 0"):
        lrn.lrn(cp.asarray(x), k=0)
    with pytest.raises(ValueError, match=r"scale has shape \(1, 9, 4\); it must be \(1, 9, 2, 2\)"):
        lrn.lrn(cp.asarray(x), scale=cp.zeros((1, 9, 4), np.float32))


# -- dropout -----------------------------------------------------------------------------------------------------------


def test_philox_gives_the_authors_known_answers():
    """Of Random123's kat_vectors, philox4x32-10."""
    for counter, key, words in (
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ):
        counter, key, words = ([int(word, 16) for word in text.split()] for text in (counter, key, words))
        assert dropout.philox(np.array([counter]), tuple(key)).tolist() == [words]


@pytest.mark.parametrize("dtype", TYPES)
def test_dropout_takes_the_mask_of_its_seed(dtype):
    for count, p, seed, offset in ((1, 0.5, 1, 0), (33, 0.25, 2**64 - 1, 7), (5003, 0.9, 3, 2**63), (4096, 0.5, 12, 1)):
        x = random(count, dtype, 1, 2)
        stays = dropout.mask(count, p, seed, offset)
        exact = np.where(stays, x.astype(np.float32) * np.float32(1 / (1 - p)), 0).astype(dtype)
        device = cp.asarray(x)
        for start in (0, 1):
            found = guarded(partial(dropout.dropout, device, p, seed, offset), (count,), dtype, start)
            np.testing.assert_array_equal(found, exact)


def test_the_backward_pass_drops_the_same_elements():
    ones = cp.asarray(np.ones((7, 100), np.float32))
    y, dx = (cp.asnumpy(dropout.dropout(ones, 0.3, 99, 4)) for _ in range(2))
    np.testing.assert_array_equal(y, dx)
    assert not np.array_equal(y, cp.asnumpy(dropout.dropout(ones, 0.3, 99, 5)))
    assert not np.array_equal(y, cp.asnumpy(dropout.dropout(ones, 0.3, 98, 4)))


def test_as_many_elements_stay_as_p_says():
    """Of 2^20, within five standard deviations: the seeds are fixed, so this fails always or never."""
    for p in (0.1, 0.5, 0.8):
        stays = dropout.mask(2**20, p, seed=2017)
        assert abs(stays.mean() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / 2**20)
        neighbours = np.corrcoef(stays[:-1], stays[1:])[0, 1]
        assert abs(neighbours) < 5 / 2**10


def test_dropout_without_dropping_and_what_it_refuses():
    x = random(10, np.float16)
    np.testing.assert_array_equal(cp.asnumpy(dropout.dropout(cp.asarray(x), 0, 1)), x)
    assert dropout.dropout(cp.zeros((0, 3), np.float32), 0.5, 1).shape == (0, 3)
    for p in (-0.1, 1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="the probability of 0 must be at least 0 and below 1"):
            dropout.dropout(cp.asarray(x), p, 1)
    for seed in (-1, 2**64, 0.5):
        with pytest.raises(ValueError, match=r"seed is .*; it must be a whole number from 0 to 2\*\*64 - 1"):
            dropout.dropout(cp.asarray(x), 0.5, seed)
    with pytest.raises(ValueError, match="x and out overlap"):
        dropout.dropout(device := cp.asarray(x), 0.5, 1, out=device)


# -- batch normalisation -----------------------------------------------------------------------------------------------

NORMS = ((1, 1, 1, 1), (2, 3, 5, 7), (3, 16, 8, 8), (2, 72, 9, 5), (5, 40, 12, 12), (2, 130, 1, 3))


def parameters(c):
    return tuple(random(c, np.float32, low, high) for low, high in ((0.5, 2), (-1, 1), (-1, 1), (0.25, 4)))


def along(array, layout):
    """Of shape (C,), to be multiplied with a tensor."""
    return array.astype(np.float64).reshape((-1, 1, 1) if layout == "NCHW" else (-1,))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_inference(dtype, layout, relu):
    for sizes in NORMS:
        x = random(shaped(*sizes, layout), dtype)
        values = parameters(sizes[1])
        gamma, beta, mean, variance = (along(value, layout) for value in values)
        factor = gamma / np.sqrt(variance + 1e-5)
        exact = (x - mean) * factor + beta
        size = abs(x * factor) + abs(mean * factor) + abs(beta)
        device, arrays = cp.asarray(x), [cp.asarray(value) for value in values]
        for offset in (0, 1):
            found = guarded(
                partial(batch_norm.inference, device, *arrays, relu=relu, layout=layout),
                x.shape,
                dtype,
                offset,
            )
            assert near(found, np.maximum(exact, 0) if relu else exact, size)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_relu_after_batch_norm_keeps_what_is_not_a_number(dtype, layout):
    x = random(shaped(2, 9, 3, 5, layout), dtype)
    x.flat[7] = np.nan
    arrays = [cp.asarray(a) for a in parameters(9)]
    found = cp.asnumpy(batch_norm.inference(cp.asarray(x), *arrays, relu=True, layout=layout))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))


@pytest.mark.parametrize("mean", [0, 1000])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_training(dtype, layout, mean):
    axes = (0, 2, 3) if layout == "NCHW" else (0, 1, 2)
    for sizes in NORMS:
        x = (generator().standard_normal(shaped(*sizes, layout)) * 2 + mean).astype(dtype)
        gamma, beta, *_ = parameters(sizes[1])
        exact = x.astype(np.float64)
        means, variances = exact.mean(axis=axes), exact.var(axis=axes)
        factor = along(gamma, layout) / np.sqrt(along(variances, layout) + 1e-5)
        y = (exact - along(means, layout)) * factor + along(beta, layout)
        device, arrays, statistics = cp.asarray(x), [cp.asarray(a) for a in (gamma, beta)], []

        def run(out, device=device, arrays=arrays, statistics=statistics):
            result, *statistics[:] = batch_norm.training(device, *arrays, layout=layout, out=out)
            assert result is out

        found = guarded(run, x.shape, dtype)
        # Sums are of differences from the median of a channel's first, middle and last element: the square of its
        # distance from the mean costs digits.
        channels = np.moveaxis(exact, 1 if layout == "NCHW" else 3, 0).reshape(sizes[1], -1)
        last = channels.shape[1] - 1
        start = np.median(channels[:, [0, last // 2, last]], axis=1)
        deviations = np.sqrt(variances)
        roundings = 2.0**-20 * (1 + ((start - means) / np.maximum(deviations, 1e-30)) ** 2)
        own_means, own_variances = map(cp.asnumpy, statistics)
        assert (abs(own_means - means) <= roundings * (deviations + abs(means))).all()
        assert (abs(own_variances - variances) <= 2 * roundings * variances).all()
        # `factor` is large where the variance is nothing, and the mean has a rounding of its own.
        center = along(means, layout)
        size = (abs(exact - center) + abs(center) + along(deviations, layout)) * abs(factor)
        assert near(found, y, size + abs(along(beta, layout)), 2.0**24 * along(roundings, layout))


@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_element_far_off_costs_the_others_no_digits(layout, where):
    """Were it taken off all the others, the sums of squares would leave no digit of their variance."""
    n, c, h, w = 3, 9, 11, 7
    channels = generator().standard_normal((c, n * h * w)).astype(np.float32)
    at = {"first": 0, "middle": (n * h * w - 1) // 2, "last": -1}[where]
    channels[:, at] = 1e6
    x = channels.reshape(c, n, h, w).transpose((1, 0, 2, 3) if layout == "NCHW" else (1, 2, 3, 0))
    ones, zeros = cp.asarray(np.ones(c, np.float32)), cp.zeros(c, np.float32)
    _, means, variances = map(
        cp.asnumpy, batch_norm.training(cp.asarray(np.ascontiguousarray(x)), ones, zeros, layout=layout)
    )
    exact = channels.astype(np.float64)
    np.testing.assert_allclose(means, exact.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(variances, exact.var(axis=1), rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_statistics_of_what_is_not_a_number_are_none(layout):
    x = random(shaped(2, 9, 3, 5, layout), np.float32)
    x[(0, 4, 1, 1) if layout == "NCHW" else (0, 1, 1, 4)] = np.nan
    ones, zeros = cp.asarray(np.ones(9, np.float32)), cp.zeros(9, np.float32)
    _, *statistics = batch_norm.training(cp.asarray(x), ones, zeros, layout=layout)
    for found in map(cp.asnumpy, statistics):
        np.testing.assert_array_equal(np.isnan(found), np.arange(9) == 4)


def test_sums_of_several_blocks(monkeypatch):
    monkeypatch.setattr(batch_norm, "MOST_PARTIAL", 7)
    for layout in LAYOUTS:
        x = random(shaped(6, 9, 23, 17, layout), np.float32, 5, 6)
        ones, zeros = cp.asarray(np.ones(9, np.float32)), cp.zeros(9, np.float32)
        first, again = (
            [cp.asnumpy(a) for a in batch_norm.training(cp.asarray(x), ones, zeros, layout=layout)] for _ in range(2)
        )
        axes = (0, 2, 3) if layout == "NCHW" else (0, 1, 2)
        np.testing.assert_allclose(first[1], x.mean(axis=axes, dtype=np.float64), rtol=1e-6)
        np.testing.assert_allclose(first[2], x.var(axis=axes, dtype=np.float64), rtol=1e-5)
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b, "the sums differ from run to run")


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("on_device", [False, True])
def test_folding_gives_the_same_layer(on_device, with_bias):
    conv = Convolution(2, 4, 6, 7, 8, 3, 3, (1, 1))
    x, w = random(conv.x_shape(), np.float32), random(conv.w_shape(), np.float32)
    bias = random(conv.k, np.float32) if with_bias else None
    values = parameters(conv.k)
    move = cp.asarray if on_device else np.asarray
    folded, shifted = batch_norm.fold(move(w), None if bias is None else move(bias), *map(move, values))
    assert (folded.dtype, shifted.dtype, folded.shape) == (np.float32, np.float32, w.shape)
    device = cp.asarray(x)
    convolved = convolve.forward(device, cp.asarray(w), None if bias is None else cp.asarray(bias), padding=1)
    two = cp.asnumpy(batch_norm.inference(convolved, *map(cp.asarray, values)))
    one = cp.asnumpy(convolve.forward(device, cp.asarray(folded), cp.asarray(shifted), padding=1))
    np.testing.assert_allclose(one, two, atol=2e-5)
    assert not np.allclose(one, cp.asnumpy(convolved), atol=0.1)


def test_batch_norm_refuses_what_does_not_fit():
    x, c = cp.zeros((1, 4, 2, 2), np.float32), cp.zeros(4, np.float32)
    for arguments, options, message in (
        ((x, c[:3], c), {}, r"gamma has shape \(3,\); it must be \(4,\)"),
        ((x, c, c), {"layout": "NHWC"}, r"gamma has shape \(4,\); it must be \(2,\)"),
        ((x[:0], c, c), {}, "none of length 0"),
        ((x, c, c.astype(np.float16)), {}, "beta is float16; the kernel takes float32"),
        ((x, c, c), {"out": x}, "x and out overlap"),
    ):
        with pytest.raises(ValueError, match=message):
            batch_norm.training(*arguments, **options)
    with pytest.raises(ValueError, match=r"mean has shape \(5,\); with 4 filters it must be \(4,\)"):
        batch_norm.fold(np.zeros((4, 1, 1, 1)), None, *(np.ones(n) for n in (4, 4, 5, 4)))
