"""Average precision: cases by hand, scikit-learn's curve, the VOC devkit's steps written out, pycocotools' values."""

from __future__ import annotations

import numpy as np
import pytest

from digits.tasks import average_precision as ap

BOX = [0.0, 0.0, 10.0, 10.0]
FAR = [100.0, 100.0, 10.0, 10.0]


def truth(*boxes: list[float]) -> np.ndarray:
    return np.array([[0.0, *box] for box in boxes]).reshape(-1, 5)


def found(*rows: tuple[list[float], float]) -> np.ndarray:
    return np.array([[0.0, *box, score] for box, score in rows]).reshape(-1, 6)


def shifted(by: float) -> list[float]:
    """A box whose IoU with BOX is (10 − by) / (10 + by)."""
    return [by, 0.0, 10.0, 10.0]


# PYCOCOTOOLS below holds for just these draws.
def scattered(seed: int, images: int = 30, classes: int = 4, ties: bool = False) -> tuple[list, list]:
    """True boxes, and detections near them, near them twice, of a wrong class, and anywhere."""
    random = np.random.default_rng(seed)
    true, detected = [], []
    for _ in range(images):
        n = int(random.integers(0, 6))
        xy, wh = random.uniform(0, 40, (n, 2)), random.uniform(8, 24, (n, 2))
        boxes = np.column_stack([random.integers(0, classes, n), xy, wh])
        rows = []
        for box in boxes:
            for _ in range(int(random.integers(0, 4))):
                near = box[1:] + random.normal(0, 1.5, 4)
                label = box[0] if random.random() < 0.85 else random.integers(classes)
                rows.append([label, *near, random.integers(1, 20) / 20 if ties else random.random()])
        for _ in range(int(random.integers(0, 3))):
            anywhere = [*random.uniform(0, 40, 2), *random.uniform(8, 24, 2)]
            rows.append([random.integers(classes), *anywhere, random.random() * 0.7])
        true.append(boxes)
        detected.append(np.array(rows).reshape(-1, 6))
    return true, detected


def test_all_right_is_one_and_nothing_found_is_zero():
    boxes = [truth(BOX, FAR), truth(BOX)]
    all_right = [found((BOX, 0.9), (FAR, 0.2)), found((BOX, 0.5))]
    nothing = [found(), found()]
    assert ap.mean(ap.voc(boxes, all_right, 1)) == 1.0
    assert ap.mean(ap.coco(boxes, all_right, 1)) == 1.0
    assert ap.mean(ap.voc(boxes, nothing, 1)) == 0.0
    assert ap.mean(ap.coco(boxes, nothing, 1)) == 0.0


def test_area_by_hand():
    # Right, wrong, right, of 4 boxes: precision 1, 1/2, 2/3; recall 1/4, 1/4, 1/2.
    boxes = [truth(BOX, FAR), truth(BOX), truth(BOX)]
    detected = [found((BOX, 0.9), (FAR, 0.7)), found((FAR, 0.8)), found()]
    curve = ap.curve(boxes, detected, 0, 0.5, "voc")
    np.testing.assert_array_equal(curve.right, [True, False, True])
    np.testing.assert_allclose(curve.precision, [1, 1 / 2, 2 / 3])
    np.testing.assert_allclose(curve.recall, [1 / 4, 1 / 4, 1 / 2])
    assert ap.voc_area(curve) == pytest.approx(1 / 4 + 1 / 4 * 2 / 3)
    # Of the 101 recalls, 0 to 0.25 are 26 and 0.26 to 0.5 are 25.
    assert ap.coco_area(curve) == pytest.approx((26 * 1 + 25 * 2 / 3) / 101)


def test_precision_falls_by_its_best_later_value():
    # Wrong, right: precision 0, 1/2; the envelope lifts the first to 1/2.
    detected = [found((FAR, 0.9), (BOX, 0.8))]
    assert ap.mean(ap.voc([truth(BOX)], detected, 1)) == 0.5


def test_a_second_detection_of_the_same_box_is_wrong():
    detected = [found((BOX, 0.9), (shifted(1), 0.8)), found((BOX, 0.1))]
    curve = ap.curve([truth(BOX), truth(BOX)], detected, 0, 0.5, "voc")
    np.testing.assert_array_equal(curve.right, [True, False, True])
    assert ap.voc_area(curve) == pytest.approx(1 / 2 + 1 / 2 * 2 / 3)


def test_where_voc_and_coco_differ():
    # Both detections overlap the first box best; COCO gives the second detection the second box, VOC gives it none.
    boxes = [truth(BOX, shifted(3))]
    detected = [found((BOX, 0.9), (shifted(0.5), 0.8))]
    np.testing.assert_array_equal(ap.curve(boxes, detected, 0, 0.5, "voc").right, [True, False])
    np.testing.assert_array_equal(ap.curve(boxes, detected, 0, 0.5, "coco").right, [True, True])


@pytest.mark.parametrize("rule", ["voc", "coco"])
def test_an_overlap_of_just_the_threshold_is_enough(rule):
    detected = [found((shifted(10 / 3), 0.9))]  # IoU 0.5
    just = ap.iou(detected[0][:, 1:5], truth(BOX)[:, 1:5])[0, 0]
    assert just == pytest.approx(0.5)
    assert ap.curve([truth(BOX)], detected, 0, just, rule).right.all()
    assert not ap.curve([truth(BOX)], detected, 0, just + 1e-6, rule).right.any()


def test_coco_is_the_mean_over_its_thresholds():
    # IoU 9/11 = 0.818: right at 0.50, 0.55 … 0.80, which are 7 of the 10 thresholds.
    assert ap.mean(ap.coco([truth(BOX)], [found((shifted(1), 0.9))], 1)) == pytest.approx(0.7)


def test_classes_are_apart_and_one_without_a_true_box_is_left_out():
    boxes = [np.array([[0, *BOX], [2, *FAR]])]
    detected = [np.array([[0, *BOX, 0.9], [1, *FAR, 0.8]])]
    areas = ap.voc(boxes, detected, 3)
    np.testing.assert_array_equal(areas, [1, np.nan, 0])
    assert ap.mean(areas) == 0.5
    assert ap.mean(ap.voc([truth()], [found()], 3)) == 0.0


def test_more_than_100_detections_of_an_image_count_for_voc_only():
    crowd = [found(*[(FAR, 0.9)] * 100, (BOX, 0.1))]
    assert ap.curve([truth(BOX)], crowd, 0, 0.5, "voc").right.sum() == 1
    assert ap.curve([truth(BOX)], crowd, 0, 0.5, "coco").right.sum() == 0


def test_as_many_images_on_both_sides():
    with pytest.raises(ValueError, match="boxes of 1 images and detections of 2; give as many of each"):
        ap.voc([truth()], [found(), found()], 1)


def test_which_box_each_detection_takes():
    boxes = np.array([[1, *FAR], [0, *BOX], [0, *FAR]])
    detected = np.array(
        [[0, *shifted(1), 0.5], [0, *BOX, 0.9], [1, *BOX, 0.9], [1, *FAR, 0.3], [2, *BOX, 0.9], [0, *FAR, 0.1]]
    )
    # The first is worse than the second, which has the box; the third and the fifth are of another class.
    np.testing.assert_array_equal(ap.taken(boxes, detected), [-1, 1, -1, 0, -1, 2])
    assert ap.taken(boxes[:0], detected).tolist() == [-1] * 6
    assert ap.taken(boxes, detected[:0]).tolist() == []


@pytest.mark.parametrize("seed", range(4))
def test_the_area_under_scikit_learns_curve(seed):
    """Where each true box was found, recall of detection is recall of a classifier of detections as right or wrong."""
    print("seed", seed)
    random = np.random.default_rng(seed)
    boxes, detected = [], []
    for _ in range(20):
        boxes.append(truth(BOX))
        wrong = [(FAR, float(random.random())) for _ in range(int(random.integers(0, 3)))]
        detected.append(found((BOX, float(random.random())), *wrong))
    right = np.concatenate([[row[1] == BOX[0] for row in rows] for rows in detected])
    scores = np.concatenate([rows[:, 5] for rows in detected])
    from sklearn.metrics import precision_recall_curve  # takes a second, and only this test needs it

    precision, recall, _ = precision_recall_curve(right, scores)  # recall falls along it
    envelope = np.maximum.accumulate(precision)
    expected = np.sum(-np.diff(recall) * envelope[:-1])
    assert ap.mean(ap.voc(boxes, detected, 1)) == pytest.approx(expected)


def voc_devkit(boxes: list, detected: list, which: int) -> float:
    """The steps of VOCevaldet.m and VOCap.m in their order, one at a time."""
    rows = [(row[5], image, row[1:5]) for image, here in enumerate(detected) for row in here if row[0] == which]
    rows.sort(key=lambda row: -row[0])
    there = [[box[1:] for box in here if box[0] == which] for here in boxes]
    done = [[False] * len(here) for here in there]
    right, wrong = np.zeros(len(rows)), np.zeros(len(rows))
    for d, (_, image, box) in enumerate(rows):
        best, at = -np.inf, -1
        for j, other in enumerate(there[image]):
            across = min(box[0] + box[2], other[0] + other[2]) - max(box[0], other[0])
            down = min(box[1] + box[3], other[1] + other[3]) - max(box[1], other[1])
            if across > 0 and down > 0:
                shared = across * down
                overlap = shared / (box[2] * box[3] + other[2] * other[3] - shared)
                if overlap > best:
                    best, at = overlap, j
        if best >= 0.5 and not done[image][at]:
            right[d], done[image][at] = 1, True
        else:
            wrong[d] = 1
    recall = np.cumsum(right) / sum(map(len, there))
    precision = np.cumsum(right) / (np.cumsum(right) + np.cumsum(wrong))
    recall, precision = np.array([0, *recall, 1]), np.array([0, *precision, 0])
    for i in range(len(precision) - 2, -1, -1):
        precision[i] = max(precision[i], precision[i + 1])
    steps = np.flatnonzero(recall[1:] != recall[:-1])
    return float(np.sum((recall[steps + 1] - recall[steps]) * precision[steps + 1]))


@pytest.mark.parametrize("seed", range(4))
def test_voc_is_what_the_devkits_steps_give(seed):
    print("seed", seed)
    boxes, detected = scattered(seed)
    expected = [voc_devkit(boxes, detected, which) for which in range(4)]
    np.testing.assert_allclose(ap.voc(boxes, detected, 4), expected)
    assert 0.2 < ap.mean(ap.voc(boxes, detected, 4)) < 0.8


# What pycocotools 2.0.11 says of the same boxes: AP at 0.50:0.95 and at 0.50, all areas, 100 detections.
PYCOCOTOOLS = {
    (0, False): (0.22009125719110975, 0.5005461141956661),
    (0, True): (0.21488534714169322, 0.48808749474487384),
    (3, False): (0.20477652917292985, 0.4584756516881419),
    (3, True): (0.2605394787042644, 0.5496862385183962),
}


@pytest.mark.parametrize(("seed", "ties"), PYCOCOTOOLS)
def test_coco_is_what_pycocotools_gives(seed, ties):
    areas = ap.coco(*scattered(seed, ties=ties), classes=4)
    expected, expected_at_half = PYCOCOTOOLS[seed, ties]
    assert ap.mean(areas) == pytest.approx(expected, abs=1e-12)
    assert ap.mean(areas[0]) == pytest.approx(expected_at_half, abs=1e-12)
