"""Occlusion against a network that is a weighted sum, for which the answer is known."""

import numpy as np
import pytest

from digits.figures import draw_heat
from digits.look.saliency import POSITIONS, _starts, occlusion
from tests.support.random_inputs import generator


def one_pixel(row, column):
    """A "network" whose class 1 has the probability that one pixel is bright."""

    def probabilities(prepared):
        p = prepared[:, row, column, 0]
        return np.stack([1 - p, p], axis=1)

    return probabilities


def test_only_patches_over_the_pixel_that_matters_change_the_answer():
    image = np.zeros((1, 8, 8, 1), np.float32)
    image[0, 3, 4] = 1
    values, patch = occlusion(one_pixel(3, 4), image, 1)
    assert patch == 2
    # The fall, 1 - 1/64, for each patch over the pixel; elsewhere the share of the patches that cover it, too.
    fall = 1 - 1 / 64
    assert values[3, 4] == pytest.approx(fall)
    assert values[3, 5] == pytest.approx(fall / 2)
    assert values[2, 3] == pytest.approx(fall / 4)
    assert values[3, 6] == values[1, 4] == values[0, 0] == 0


def test_against_the_class_is_negative():
    image = np.zeros((1, 8, 8, 1), np.float32)
    image[0, 3, 4] = 1
    assert occlusion(one_pixel(3, 4), image, 0)[0][3, 4] == pytest.approx(-(1 - 1 / 64))


def test_the_image_is_left_as_it_was_and_progress_reaches_the_end():
    image = generator().random((1, 9, 7, 3)).astype(np.float32)
    before, told = image.copy(), []
    values, _ = occlusion(lambda x: np.stack([x.mean(axis=(1, 2, 3))] * 2, axis=1), image, 0, told.append, batch=10)
    assert np.array_equal(image, before)
    assert told[-1] == 1.0
    assert told == sorted(told)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("side", [1, 2, 3, 8, 28, 64, 97, 224, 1024])
def test_patches_cover_every_pixel_and_are_few(side):
    patch = min(max(2, round(side / 6)), side)
    starts = _starts(side, patch)
    covered = np.zeros(side, int)
    for start in starts:
        covered[start : start + patch] += 1
    assert covered.min() >= 1
    assert covered.sum() == len(starts) * patch  # none sticks out
    assert len(starts) <= POSITIONS


def test_a_map_of_squares_lies_in_the_middle_of_its_image():
    drawn = draw_heat(np.zeros((1, 8, 8)), [np.zeros((7, 7))], ["a digit"], "squares of 2 × 2")
    above, below = drawn.axes
    assert below.get_xlim() == above.get_xlim()
    assert below.get_ylim() == above.get_ylim()
    assert below.images[0].get_extent() == [0, 7, 7, 0]  # of pixels 0 to 7, whose middles are at whole numbers
