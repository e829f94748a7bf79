"""Boxes to a grid and back: each box comes back from every cell that it covers; the figures of what was found."""

from __future__ import annotations

import numpy as np
import pytest

from digits.data import scenes
from digits.data.scene_drawing import NOTHING, SceneOptions, pack_boxes
from digits.tasks import grid
from digits.tasks.boxes import WHERE, iou
from digits.tasks.detection import measured

GRID, STRIDE = (16, 16), 4


def boxes(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array([*rows, (NOTHING, 0, 0, 0, 0)], np.float32)


def test_the_middle_of_a_box_is_covered():
    # From x 8 to 24 and y 16 to 40: centres of cells at 2, 6, 10 … within 4 of x = 16 and within 6 of y = 28.
    coverage, edges, covered = grid.targets(boxes((3, 8, 16, 16, 24)), GRID, STRIDE, 10)
    rows, columns = np.nonzero(covered)
    assert sorted(set(columns)) == [3, 4]
    assert sorted(set(rows)) == [5, 6, 7, 8]
    assert len(rows) == 8
    np.testing.assert_array_equal(np.nonzero(coverage[..., 3]), (rows, columns))
    assert coverage.sum() == 8
    # The cell of row 5 and column 3 has its centre at (14, 22).
    np.testing.assert_allclose(edges[5, 3] * STRIDE, [14 - 8, 22 - 16, 24 - 14, 40 - 22])
    assert (edges[covered == 0] == 0).all()


def test_a_small_box_has_the_cell_of_its_centre():
    _, _, covered = grid.targets(boxes((0, 0, 0, 1, 1), (1, 63, 63, 1, 1)), GRID, STRIDE, 10)
    np.testing.assert_array_equal(np.argwhere(covered), [[0, 0], [15, 15]])


def test_the_smaller_of_two_boxes_has_the_cells_that_both_cover():
    for rows in ([(1, 0, 0, 40, 40), (2, 16, 16, 8, 8)], [(2, 16, 16, 8, 8), (1, 0, 0, 40, 40)]):
        coverage, edges, _ = grid.targets(boxes(*rows), GRID, STRIDE, 10)
        assert (coverage[4:6, 4:6, 2] == 1).all()
        assert (coverage[4:6, 4:6, 1] == 0).all()
        np.testing.assert_allclose(edges[4, 4] * STRIDE, [2, 2, 6, 6])


def test_no_box_is_no_coverage():
    for array in grid.targets(boxes(), GRID, STRIDE, 10):
        assert (array == 0).all()


def test_cells_tell_of_their_boxes_again():
    true = boxes((3, 8, 16, 16, 24), (7, 40, 2, 12, 20))
    coverage, edges, covered = grid.targets(true, GRID, STRIDE, 10)
    found = grid.cells(coverage, edges, STRIDE)
    assert len(found) == covered.sum()
    for label, row in ((3, true[0]), (7, true[1])):
        here = found[found[:, 0] == label]
        assert len(here) >= 2
        np.testing.assert_allclose(here[:, WHERE], np.tile(row[1:], (len(here), 1)), atol=1e-4)


@pytest.mark.parametrize("way", ["group", "suppress"])
def test_each_digit_of_a_scene_comes_back_once(way):
    drawn = list(scenes.draw_part("train", 30, 7, SceneOptions()))
    random = np.random.default_rng(7)
    for scene, packed in zip(drawn, pack_boxes([scene.boxes for scene in drawn], 5), strict=True):
        coverage, edges, covered = grid.targets(packed, GRID, STRIDE, 10)
        # As a network says it: not all cells as sure, edges a little off.
        coverage = coverage * random.uniform(0.5, 1, covered.shape)[..., None]
        edges = edges + random.normal(0, 0.02, edges.shape)
        found = grid.detections(coverage, edges, STRIDE, way)
        assert sorted(found[:, 0]) == sorted(scene.boxes[:, 0])
        assert (iou(scene.boxes[:, WHERE], found[:, WHERE]).max(axis=1) > 0.9).all()


def test_boxes_end_at_the_image_and_unsure_cells_say_nothing():
    coverage, edges = np.zeros((*GRID, 2), np.float32), np.full((*GRID, 4), 100.0, np.float32)
    coverage[0, 0, 1], coverage[5, 5, 0] = 0.5, 0.04
    np.testing.assert_allclose(grid.cells(coverage, edges, STRIDE), [[1, 0, 0, 64, 64, 0.5]])
    assert len(grid.cells(coverage, edges, STRIDE, least=0.04)) == 2
    # A left edge to the right of the right one is no box.
    edges[0, 0] = [-2, 1, 1, 1]
    assert len(grid.cells(coverage, edges, STRIDE)) == 0


def test_an_untrained_network_that_sees_everything_everywhere_is_cut_short():
    random = np.random.default_rng(0)
    coverage, edges = random.uniform(0.1, 1, (64, 64, 10)), np.full((64, 64, 4), 2.0)
    assert len(grid.cells(coverage, edges, STRIDE)) == grid.MOST_CELLS


def test_a_way_that_is_none_is_named():
    with pytest.raises(ValueError, match="way is 'merge'; give one of group, suppress, cells"):
        grid.detections(np.zeros((2, 2, 1)), np.zeros((2, 2, 4)), STRIDE, "merge")


def test_figures_of_detections():
    truth = [np.array([[0, 0, 0, 10, 10], [1, 20, 20, 10, 10]], np.float32)] * 2
    found = [
        np.array([[0, 0, 0, 10, 10, 0.9], [1, 40, 40, 10, 10, 0.8]], np.float32),  # one right, one wrong
        np.array([[0, 0, 0, 10, 10, 0.7], [1, 20, 20, 10, 10, 0.4]], np.float32),  # one right, one not sure
    ]
    figures = measured(truth, found, 2)
    # Class 0: all right. Class 1: wrong at 0.8, right at 0.4, one of two found: 1/2 × 1/2.
    assert figures["mAP"] == pytest.approx((1 + 1 / 4) / 2)
    assert figures["mAP_coco"] == pytest.approx((1 + 51 / 101 / 2) / 2)
    assert figures["precision"] == 2 / 3
    assert figures["recall"] == 2 / 4


def test_figures_of_nothing():
    nothing = [np.zeros((0, 6), np.float32)]
    assert measured([np.zeros((0, 5))], nothing, 2) == {"mAP": 0.0, "mAP_coco": 0.0, "precision": 0.0, "recall": 0.0}
