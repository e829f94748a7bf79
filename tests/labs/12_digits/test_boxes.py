"""Overlap, suppression and grouping of boxes, against cases by hand and against pixels counted."""

from __future__ import annotations

import numpy as np
import pytest

from digits.tasks.boxes import group, iou, non_maximum_suppression


def test_iou_of_boxes_by_hand():
    boxes = [[0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 4, 4], [5, 5, 0, 0]]
    others = [[0, 0, 10, 10], [5, 0, 10, 10], [10, 0, 10, 10], [2, 2, 2, 2]]
    expected = [[1, 1 / 3, 0, 0.04], [1, 1 / 3, 0, 0.04], [0.16, 0, 0, 0.25], [0, 0, 0, 0]]
    np.testing.assert_allclose(iou(np.array(boxes), np.array(others)), expected)


@pytest.mark.parametrize("seed", range(3))
def test_iou_is_what_counting_pixels_gives(seed):
    print("seed", seed)
    random = np.random.default_rng(seed)
    boxes = np.column_stack([random.integers(0, 12, (8, 2)), random.integers(1, 12, (8, 2))])
    painted = np.zeros((8, 24, 24), bool)
    for here, (x, y, width, height) in zip(painted, boxes, strict=True):
        here[y : y + height, x : x + width] = True
    found = iou(boxes, boxes)
    for i in range(8):
        for j in range(8):
            assert found[i, j] == pytest.approx((painted[i] & painted[j]).sum() / (painted[i] | painted[j]).sum())


def test_iou_of_no_boxes_and_of_a_wrong_shape():
    assert iou(np.zeros((0, 4)), np.ones((3, 4))).shape == (0, 3)
    with pytest.raises(ValueError, match=r"others has shape \(3, 5\); give \(n, 4\)"):
        iou(np.ones((3, 4)), np.ones((3, 5)))


# class, x, y, width, height, score; the second overlaps the first by 2/3, the third overlaps it by 1/4.
CHAIN = np.array(
    [[1, 0, 0, 10, 10, 0.6], [1, 2, 0, 10, 10, 0.9], [1, 6, 0, 10, 10, 0.8], [2, 2, 0, 10, 10, 0.5]], np.float32
)


def test_suppression_compares_with_what_was_kept_only():
    # The best, at x = 2, removes the one at x = 0 (IoU 2/3), not the one at x = 6 (3/7), and no other class.
    kept = non_maximum_suppression(CHAIN, 0.5)
    np.testing.assert_array_equal(kept[:, 1], [2, 6, 2])
    np.testing.assert_array_equal(kept[:, 0], [1, 1, 2])


def test_what_was_suppressed_does_not_suppress():
    chain = np.array([[0, 0, 0, 10, 10, 0.9], [0, 3, 0, 10, 10, 0.8], [0, 6, 0, 10, 10, 0.7]])
    np.testing.assert_array_equal(non_maximum_suppression(chain, 0.5)[:, 1], [0, 6])


def test_suppression_at_the_threshold_keeps_both():
    pair = np.array([[0, 0, 0, 10, 10, 0.9], [0, 5, 0, 10, 10, 0.8]])
    assert len(non_maximum_suppression(pair, 1 / 3)) == 2
    assert len(non_maximum_suppression(pair, 1 / 3 - 1e-6)) == 1


def test_suppression_of_nothing_and_a_wrong_threshold():
    assert non_maximum_suppression(np.zeros((0, 6))).shape == (0, 6)
    with pytest.raises(ValueError, match=r"threshold is 1\.5; give a number from 0 to 1"):
        non_maximum_suppression(CHAIN, 1.5)


def test_a_group_is_the_mean_weighted_by_score():
    pair = np.array([[3, 0, 0, 10, 10, 0.25], [3, 2, 0, 10, 14, 0.75], [3, 40, 0, 10, 10, 0.5]])
    found = group(pair, spread=0.5)
    np.testing.assert_allclose(found, [[3, 1.5, 0, 10, 13, 0.75], [3, 40, 0, 10, 10, 0.5]])


def test_similar_through_others_is_one_group():
    chain = np.array([[0, x, 0, 10, 10, 0.5] for x in (0, 3, 6, 9)])
    assert len(group(chain, spread=0.3)) == 1
    assert len(group(chain, spread=0.29)) == 4


def test_small_groups_are_dropped_and_classes_stay_apart():
    rows = np.array([[0, 0, 0, 10, 10, 0.9], [1, 0, 0, 10, 10, 0.5], [1, 1, 0, 10, 10, 0.5]])
    found = group(rows, fewest=2)
    np.testing.assert_allclose(found, [[1, 0.5, 0, 10, 10, 0.5]])
    assert group(np.zeros((0, 6))).shape == (0, 6)
