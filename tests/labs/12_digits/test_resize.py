"""The four resize modes, on images whose right answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from digits.data.resize import MODES, fit
from digits.files import DigitsError


def rng():
    return np.random.default_rng(7)


def stripes(height=20, width=40):
    """Grey 100 with a column of 200 on either side, a quarter of the width each."""
    image = np.full((height, width), 100, np.uint8)
    image[:, : width // 4] = image[:, -(width // 4) :] = 200
    return Image.fromarray(image)


def fitted(mode, height=10, width=10, channels=1):
    return fit(stripes(), height, width, channels, mode, rng())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(10, 10), (7, 31), (31, 7), (1, 1), (20, 40), (40, 80), (3, 1000)])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_gives_the_size(mode, size, channels):
    result = fitted(mode, *size, channels)
    assert result.shape == (*size, channels)
    assert result.dtype == np.uint8
    assert result.flags.c_contiguous
    assert result.flags.writeable


def test_squash_keeps_all_and_distorts():
    row = fitted("squash")[5, :, 0]
    assert row[0] == row[-1] == 200
    assert row[4] == row[5] == 100


def test_crop_cuts_the_sides_off():
    assert (fitted("crop")[:, 1:-1] == 100).all()  # the outermost columns touch the stripes


def test_fill_keeps_all_and_adds_noise_above_and_below():
    result = fitted("fill")[..., 0]
    assert (result[3:7, 0] == 200).all()
    assert (result[3:7, 4:6] == 100).all()
    noise = np.concatenate([result[:2], result[8:]])
    assert len(np.unique(noise)) > 20


def test_half_crop_is_between_crop_and_fill():
    result = fitted("half crop", 30, 30)[..., 0]  # 40 × 20 becomes 40 × 20: 5 columns off each side, 5 rows of noise
    np.testing.assert_array_equal(result[5:25], np.asarray(stripes())[:, 5:35])
    assert len(np.unique(result[:5])) > 50


@pytest.mark.parametrize("mode", MODES)
def test_same_proportions_need_neither_cut_nor_noise(mode):
    np.testing.assert_array_equal(fitted(mode, 20, 40)[..., 0], np.asarray(stripes()))
    np.testing.assert_array_equal(fitted(mode, 10, 20), fitted("squash", 10, 20))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(1, 200_000), (200_000, 1)])
def test_very_long_image_needs_no_more_memory_than_itself(mode, size):
    image = Image.new("L", size, 80)
    made = []
    resize = Image.Image.resize
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Image.Image, "resize", lambda self, to, *rest: made.append(to) or resize(self, to, *rest))
        result = fit(image, 32, 24, 1, mode, rng())
    assert result.shape == (32, 24, 1)
    assert 80 in result
    assert all(width * height <= 32 * 24 for width, height in made)


@pytest.mark.parametrize("mode", ["crop", "fill", "half crop"])
def test_shapes_are_not_distorted(mode):
    """A disc stays one, as wide as it is high, and in the middle."""
    y, x = np.mgrid[:240, :400]
    disc = Image.fromarray(((y - 119.5) ** 2 + (x - 199.5) ** 2 < 60**2).astype(np.uint8) * 255)
    made = fit(disc, 200, 200, 1, mode, rng())[..., 0]
    ratio, noise = {"crop": (240 / 200, 0), "fill": (400 / 200, 40), "half crop": (320 / 200, 25)}[mode]
    made[:noise] = made[200 - noise :] = 0
    rows, columns = np.nonzero(made > 127)
    for places in (rows, columns):
        assert abs(np.ptp(places) + 1 - 120 / ratio) <= 2
        assert abs(places.mean() - 99.5) <= 0.5


def test_noise_is_that_of_the_generator():
    first, again = fitted("fill"), fitted("fill")
    other = fit(stripes(), 10, 10, 1, "fill", np.random.default_rng(8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_scaling_down_averages():
    checks = Image.fromarray((np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8))
    assert np.abs(fit(checks, 8, 8, 1, "squash", rng()).astype(int) - 127).max() <= 2


def test_grey_is_the_luma_of_colour():
    colour = Image.new("RGB", (4, 4), (255, 0, 0))
    assert (fit(colour, 4, 4, 1, "squash", rng()) == 76).all()  # 0.299 × 255
    assert fit(colour, 4, 4, 3, "squash", rng())[0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((0, 8, 1, "crop"), "from 1 to 1024"),
        ((8, 1025, 1, "crop"), "from 1 to 1024"),
        ((8, 8, 2, "crop"), "1 for grey or 3 for colour"),
        ((8, 8, 1, "zoom"), "no resize mode 'zoom'. Choose one of crop, squash"),
    ],
)
def test_impossible_size_is_refused(arguments, why):
    with pytest.raises(DigitsError, match=why):
        fit(stripes(), *arguments, rng())
