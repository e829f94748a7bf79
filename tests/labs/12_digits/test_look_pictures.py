"""Pictures of arrays, and their text alternatives."""

import io

import numpy as np
import pytest
from PIL import Image

from digits.look import pictures, words
from digits.look.answers import LayerOutput, LayerWeights, Saliency
from digits.look.statistics import statistics
from tests.support.random_inputs import generator


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA")).astype(int)


def brightness(rgba):
    """Relative luminance as WCAG defines it."""
    share = rgba[..., :3] / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_brightness_rises_with_the_number():
    seen = brightness(pixels(pictures.heat_png(np.linspace(-1, 1, 64)[None])))[0]
    assert (np.diff(seen) > 0).all()
    assert seen[-1] - seen[0] > 0.5


def test_zero_is_darkest_where_nothing_is_negative_and_in_the_middle_elsewhere():
    assert pictures.limits_of(np.array([0.5, 2.0])) == (0, 2)
    assert pictures.limits_of(np.array([-3.0, 2.0])) == (-3, 3)
    assert pictures.limits_of(np.array([np.nan, np.inf])) == (0, 1)
    middle = pixels(pictures.heat_png(np.array([[-3.0, 0.0, 3.0]])))[0, 1]
    assert np.ptp(middle[:3]) < 10  # grey


def test_tiles_stand_in_rows_with_gaps_between():
    maps = np.zeros((3, 2, 2), np.float32)
    maps[2] = 1
    sheet = pixels(pictures.tiles_png(maps, columns=2))
    assert sheet.shape == (5, 5, 4)
    assert (sheet[2] == 0).all()
    assert (sheet[:, 2] == 0).all()
    bright, dark = sheet[3, 0], sheet[0, 0]
    assert brightness(bright) > brightness(dark)
    assert sheet[3:, 3:, 3].max() == 0  # no fourth tile


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_a_vector_has_one_pixel_per_value(count):
    found = pixels(pictures.vector_png(np.arange(1, count + 1, dtype=np.float32)))
    assert found.shape[:2] == (-(-count // 32), min(count, 32))
    assert (found[..., 3] > 0).sum() == count
    assert np.diff(brightness(found).ravel()[:count]).min(initial=0) >= 0


@pytest.mark.parametrize(("inputs", "size"), [(1, None), (3, None), (4, (5 * 4 - 1, 4 * 4 - 1))])
def test_filters_of_one_three_and_more_inputs(inputs, size):
    tiles = generator().normal(size=(5, inputs, 3, 3)).astype(np.float32)
    found = pixels(pictures.filters_png(tiles))
    if size:
        assert found.shape[:2] == size
    drawn = (found[..., 3] > 0).sum()
    assert drawn == 5 * 9 * (inputs if inputs == 4 else 1)


def test_three_inputs_are_red_green_and_blue_about_grey():
    tiles = np.zeros((1, 3, 1, 3), np.float32)
    tiles[0, 0, 0, 0], tiles[0, 2, 0, 2] = 1, -1
    (row,) = pixels(pictures.filters_png(tiles))
    assert row[:, :3].tolist() == [[255, 128, 128], [128, 128, 128], [128, 128, 0]]


def test_an_overlay_leaves_the_image_where_nothing_is_said():
    image = np.full((1, 3, 1), 100, np.uint8)
    speaks_for, silent, against = pixels(pictures.overlay_png(image, np.array([[2.0, 0.0, -2.0]])))[0, :, :3]
    assert silent.tolist() == [100, 100, 100]
    assert speaks_for[0] > speaks_for[2]
    assert against[2] > against[0]


def test_what_is_no_number_is_red_and_crossed_out():
    found = pixels(pictures.heat_png(np.full((5, 5), np.nan)))
    assert found[0, 2, :3].tolist() == list(pictures.NOT_A_NUMBER)
    assert all(found[i, i, 0] == 255 and found[i, 4 - i, 0] == 255 for i in range(5))
    one = pixels(pictures.heat_png(np.array([[np.nan, 1.0]])))[0]
    assert one[0, :3].tolist() == list(pictures.NOT_A_NUMBER)
    pixels(pictures.overlay_png(np.zeros((1, 2, 3), np.uint8), np.array([[np.nan, 1.0]])))


def test_words_say_what_the_pictures_show():
    maps = np.zeros((4, 2, 2), np.float32)
    maps[2] = 0.5
    layer = LayerOutput("conv <b>", "Conv2D", (2, 2, 9), 90, statistics(maps), 9, 1, maps)
    assert words.activation(layer) == (
        "The first 4 of 9 channels of conv <b>, 2 × 2 values each, from 0 to 0.5. The largest mean, 0.5, has channel 2 "
        "(counted from 0, row by row)."
    )
    kernel = LayerWeights("kernel", (3, 3, 1, 4), statistics(np.array([-1.0, 2.0])), np.zeros((4, 1, 3, 3), np.float32))
    assert words.weights("conv", kernel) == "4 filters of conv, 3 × 3, values from −1 to 2."
    matrix = LayerWeights("kernel", (300, 10), kernel.statistics, np.zeros((1, 1, 256, 10), np.float32))
    assert "300 × 10 (inputs × units), the first 256 × 10 of them" in words.weights("dense", matrix)
    found = Saliency(np.float32([[0, 2], [-1, 0]]), 1, 0.75, "gradient", 0)
    assert words.saliency(found, ["a", "b"]) == (
        "How pixels speak for class b, answered with 75.0\N{NO-BREAK SPACE}%. Most for it: row 0, column 1, 2. "
        "Most against it: row 1, column 0, −1."
    )
    assert words.figures(statistics(np.full(3, np.nan))).startswith("All 3 values are NaN")
    assert words.share(float("nan")) == "not a number"
