"""What the lesson's checks compute and its pictures show, beyond what the learner's answers in answers.py exercise."""

import itertools

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from digits import figures, lesson_checks
from digits.tasks import boxes


def point(epoch, part="train", **values):
    return {"epoch": epoch, "part": part, "step": round(epoch * 40), "loss": 1.0, "accuracy": 0.5, **values}


def scores_by(weights):
    return lambda images: (np.asarray(images) * weights).sum(axis=(1, 2))


def test_suppression_is_the_lab_s_own_where_all_boxes_are_of_one_class():
    rng = np.random.default_rng(3)
    where = np.column_stack([rng.uniform(0, 40, (60, 2)), rng.uniform(5, 20, (60, 2))])
    scores = rng.permutation(60) / 60
    kept = lesson_checks.suppressed(scores, boxes.iou(where, where), 0.4)
    detections = np.column_stack([np.zeros(60), where, scores])
    np.testing.assert_array_equal(boxes.non_maximum_suppression(detections, 0.4), detections[kept])
    assert 1 < len(kept) < 60


def test_a_covered_square_takes_away_what_its_pixels_gave():
    image, weights = np.arange(1.0, 13).reshape(3, 4), np.array([[1.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 5]])
    fall = lesson_checks.occluded(image, scores_by(weights), 2)
    given = image * weights
    assert fall.shape == (2, 3)
    for (y, x), value in np.ndenumerate(fall):
        assert value == given[y : y + 2, x : x + 2].sum()


def test_points_within_an_epoch_are_drawn_as_their_mean_at_its_end():
    points = [point(0, "validation", loss=2.0), point(0.5, loss=4.0), point(1, loss=2.0), point(1.5, loss=1.0)]
    figure = figures.draw_curves({"run": [*points, point(1, "validation", loss=0.5)]})
    training, validation = figure.axes[0].lines
    assert training.get_xydata().tolist() == [[1, 3], [2, 1]]
    assert validation.get_xydata().tolist() == [[0, 2], [1, 0.5]]


def test_a_point_without_the_figure_is_left_out_of_its_panel():
    figure = figures.draw_curves({"run": [point(1, "validation", mAP=None), point(2, "validation", mAP=0.25)]}, "mAP")
    assert figure.axes[1].lines[1].get_xydata().tolist() == [[2, 0.25]]


@pytest.mark.parametrize("best", [2, 99])
def test_an_epoch_that_does_not_exist_is_not_marked(best):
    figure = figures.draw_early_stop([3.0, 2.0, 1.0, 2.0], best, 1, "")
    assert len(figure.axes[0].lines) == (2 if best == 2 else 1)


def test_a_confusion_matrix_shows_each_count_that_is_not_0():
    matrix = np.array([[5, 0], [2, 7]])
    texts = [text.get_text() for text in figures.draw_confusion(matrix, ["a", "b"], "").axes[0].texts]
    assert sorted(texts) == ["2", "5", "7"]


def test_the_shaded_area_is_the_average_precision():
    right, objects = [True, False, True, True], 5
    ax = figures.draw_precision_recall(right, objects, "").axes[0]
    envelope = ax.lines[0].get_xydata()
    area = sum((after[0] - before[0]) * after[1] for before, after in itertools.pairwise(envelope))
    assert area == pytest.approx((1 + 3 / 4 + 3 / 4) / 5)


def test_boxes_stand_where_they_are():
    ax = figures.draw_boxes(np.zeros((20, 30)), {"one": [(3, 4, 5, 6)], "none": []}, "").axes[0]
    (box,) = (patch for patch in ax.patches if isinstance(patch, Rectangle))
    assert (*box.get_xy(), box.get_width(), box.get_height()) == (3, 4, 5, 6)


@pytest.mark.parametrize("dtype", [np.uint8, float])
def test_images_have_one_scale_with_0_black_and_255_white(dtype):
    image = np.array([[0, 128, 255]], dtype)
    drawn = [ax.images[0] for ax in figures.draw_images([image, image // 2], ["", "half as bright"]).axes]
    grey = [picture.to_rgba(picture.get_array())[0, :, :3].mean(axis=-1) for picture in drawn]
    np.testing.assert_allclose(grey, [[0, 128 / 255, 1], [0, 64 / 255, 127 / 255]], atol=0.01)


def test_each_piece_of_a_mask_is_named_where_it_is():
    mask = np.zeros((12, 12), np.uint8)
    mask[:4, :4], mask[:4, 8:], mask[8:], mask[6, 6] = 1, 1, 10, 3
    texts = figures.draw_masks(np.zeros((12, 12)), {"truth": mask}, 10, "").axes[1].texts
    assert sorted(text.get_text() for text in texts) == ["0", "0", "9"], "a pixel or two are too small for a name"
    for text in texts:
        column, row = text.xy
        assert mask[row, column] == int(text.get_text()) + 1


def test_every_file_of_a_run_is_in_the_picture_of_its_jobs():
    texts = {text.get_text() for text in figures.draw_jobs().axes[0].texts}
    assert {"run.json", "wanted", "lock", "state.json", "curves.jsonl", "checkpoints/"} <= texts
