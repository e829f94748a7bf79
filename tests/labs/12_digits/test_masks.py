"""Agreement of masks, against cases by hand and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from digits.tasks import masks
from tests.support.lazily import module

reference = module("sklearn.metrics")

TRUE = np.array([[0, 0, 1, 1], [0, 0, 1, 2]])
FOUND = np.array([[0, 1, 1, 1], [0, 0, 2, 2]])


def test_figures_by_hand():
    counts = masks.confusion(TRUE, FOUND, 4)
    np.testing.assert_array_equal(counts, [[3, 1, 0, 0], [0, 2, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    assert masks.pixel_accuracy(counts) == 6 / 8
    np.testing.assert_array_equal(masks.iou_by_value(counts), [3 / 4, 2 / 4, 1 / 2, np.nan])
    assert masks.mean_iou(counts) == pytest.approx((3 / 4 + 2 / 4 + 1 / 2) / 3)
    assert masks.mean_accuracy(counts) == pytest.approx((3 / 4 + 2 / 3 + 1) / 3)
    assert masks.weighted_iou(counts) == pytest.approx((4 * 3 / 4 + 3 * 2 / 4 + 1 * 1 / 2) / 8)


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_scikit_learns(seed):
    print("seed", seed)
    random = np.random.default_rng(seed)
    true = random.integers(0, 5, (3, 20, 20)).astype(np.uint8)
    found = np.where(random.random(true.shape) < 0.7, true, random.integers(0, 5, true.shape)).astype(np.uint8)
    counts = masks.confusion(true, found, 5)
    np.testing.assert_array_equal(counts, reference.confusion_matrix(true.ravel(), found.ravel()))
    assert masks.pixel_accuracy(counts) == pytest.approx(reference.accuracy_score(true.ravel(), found.ravel()))
    expected, mean, weighted = (
        reference.jaccard_score(true.ravel(), found.ravel(), average=average) for average in (None, "macro", "weighted")
    )
    np.testing.assert_allclose(masks.iou_by_value(counts), expected)
    assert masks.mean_iou(counts) == pytest.approx(mean)
    assert masks.weighted_iou(counts) == pytest.approx(weighted)


def test_counts_of_parts_add_up():
    whole = masks.confusion(TRUE, FOUND, 3)
    np.testing.assert_array_equal(whole, sum(masks.confusion(t, f, 3) for t, f in zip(TRUE, FOUND, strict=True)))


def test_a_value_found_but_never_true_counts_against_the_mean():
    counts = masks.confusion(np.zeros(4, int), np.array([0, 0, 0, 1]), 2)
    assert masks.mean_iou(counts) == pytest.approx((3 / 4 + 0) / 2)


def test_no_pixels_and_no_agreement():
    nothing = masks.confusion(np.zeros((0, 4)), np.zeros((0, 4)), 3)
    assert [masks.pixel_accuracy(nothing), masks.mean_iou(nothing), masks.mean_accuracy(nothing)] == [0.0] * 3
    assert masks.weighted_iou(nothing) == 0.0


def test_wrong_masks_are_named():
    with pytest.raises(ValueError, match="the found mask has values 0 to 2; give 0 to 1"):
        masks.confusion(np.zeros((2, 4)), FOUND, 2)
    with pytest.raises(ValueError, match=r"masks of shapes \(2, 4\) and \(2, 3\); give the same shape"):
        masks.confusion(TRUE, FOUND[:, :3], 3)
