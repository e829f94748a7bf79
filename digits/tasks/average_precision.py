"""Average precision of detections, as PASCAL VOC (2010 and later) and COCO define it.

Both walk through the detections of a class from the best score down, call each one right or wrong, and take the area
under precision against recall, after making precision fall: at each recall, the best precision at that recall or more.

- **VOC**: a detection looks at the true box of its class in its image with the greatest IoU. It is right if that IoU is
  at least 0.5 and no better detection took that box. The area is exact ("all points").
  Everingham et al., The PASCAL VOC development kit, 2010, section 3.4.1; `VOCevaldet.m`.
- **COCO**: a detection takes, of the boxes not yet taken, the one with the greatest IoU. At most 100 detections per
  image and class count. The area is the mean of precision at 101 recalls 0, 0.01 … 1, and the figure is the mean over
  the thresholds 0.50, 0.55 … 0.95. cocodataset.org, Detection evaluation; `cocoeval.py` of pycocotools.

The mean over classes leaves out classes without a true box. COCO's areas small, medium and large, crowds and VOC's
"difficult" boxes are not here: scenes have none.

Everywhere `truth` is a list with one array (boxes, 5) per image, class, x, y, width, height, and `found` one with
arrays (detections, 6), class, x, y, width, height, score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from digits.tasks.boxes import CLASS, SCORE, WHERE, by_score, iou

VOC_THRESHOLD = 0.5
COCO_THRESHOLDS = tuple(np.round(np.linspace(0.5, 0.95, 10), 2).tolist())
COCO_RECALLS = np.linspace(0, 1, 101)
COCO_MOST = 100  # detections per image and class
_NEARLY_ONE = 1 - 1e-10  # pycocotools' bound on a threshold


@dataclass(frozen=True)
class PrecisionRecall:
    """One class at one IoU threshold, after each detection from the best score down.

    `scores`, `right`, `precision`, `recall`: (detections,); `boxes`: how many true boxes there are.
    """

    scores: np.ndarray
    right: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    boxes: int


def voc(truth: Sequence[np.ndarray], found: Sequence[np.ndarray], classes: int) -> np.ndarray:
    """Return VOC's average precision of each class, float64 (classes,); NaN for a class without a true box."""
    return np.array([voc_area(curve(truth, found, which, VOC_THRESHOLD, "voc")) for which in range(classes)])


def coco(
    truth: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    classes: int,
    thresholds: Sequence[float] = COCO_THRESHOLDS,
) -> np.ndarray:
    """Return COCO's average precision, float64 (thresholds, classes); NaN for a class without a true box."""
    columns = []
    for which in range(classes):
        overlaps, scores, boxes = _overlaps(truth, found, which, COCO_MOST)
        columns.append([coco_area(_points(overlaps, scores, boxes, at, _match_coco)) for at in thresholds])
    return np.array(columns).reshape(classes, len(thresholds)).T


def mean(areas: np.ndarray) -> float:
    """Return the mean over all areas that are no NaN: mAP; 0.0 if there is none."""
    there = areas[~np.isnan(areas)]
    return float(there.mean()) if there.size else 0.0


def curve(
    truth: Sequence[np.ndarray], found: Sequence[np.ndarray], which: int, threshold: float, rule: str
) -> PrecisionRecall:
    """Return precision and recall of class `which`, matched by the `rule` "voc" or "coco" at an IoU of `threshold`."""
    match, most = {"voc": (_match_voc, None), "coco": (_match_coco, COCO_MOST)}[rule]
    return _points(*_overlaps(truth, found, which, most), threshold, match)


def taken(truth: np.ndarray, found: np.ndarray, threshold: float = VOC_THRESHOLD) -> np.ndarray:
    """Return, for one image, the row of `truth` that each detection takes by VOC's rule, int (m,), −1 if wrong.

    `truth` (n, 5), `found` (m, 6), of any classes; the better score comes first, wherever it stands in `found`.
    """
    rows = np.full(len(found), -1)
    for which in np.unique(found[:, CLASS]):
        here, boxes = np.flatnonzero(found[:, CLASS] == which), np.flatnonzero(truth[:, CLASS] == which)
        here = here[np.argsort(-found[here, SCORE], kind="stable")]
        matched = _match_voc(iou(found[here][:, WHERE], truth[boxes][:, WHERE]), threshold)
        rows[here[matched >= 0]] = boxes[matched[matched >= 0]]
    return rows


def voc_area(points: PrecisionRecall) -> float:
    """Return the exact area under the falling precision, over recall from 0 to 1; NaN without a true box."""
    if not points.boxes:
        return float("nan")
    recall = np.concatenate([[0], points.recall])
    return float(np.sum(np.diff(recall) * _falling(points.precision)))


def coco_area(points: PrecisionRecall) -> float:
    """Return the mean of falling precision at 101 recalls, 0 at those not reached; NaN without a true box."""
    if not points.boxes:
        return float("nan")
    reached = np.searchsorted(points.recall, COCO_RECALLS, side="left")
    precision = np.concatenate([_falling(points.precision), [0]])
    return float(precision[np.minimum(reached, len(points.recall))].mean())


def _overlaps(
    truth: Sequence[np.ndarray], found: Sequence[np.ndarray], which: int, most: int | None
) -> tuple[list[np.ndarray], np.ndarray, int]:
    """Return for class `which`: per image the IoU of detections, best first, and true boxes; scores; how many boxes."""
    if len(truth) != len(found):
        raise ValueError(f"boxes of {len(truth)} images and detections of {len(found)}; give as many of each")
    overlaps, scores, boxes = [], [np.zeros(0)], 0
    for here, detections in zip(truth, found, strict=True):
        here = here[here[:, CLASS] == which]
        detections = by_score(detections[detections[:, CLASS] == which])[:most]
        scores.append(detections[:, SCORE])
        overlaps.append(iou(detections[:, WHERE], here[:, WHERE]))
        boxes += len(here)
    return overlaps, np.concatenate(scores), boxes


def _points(
    overlaps: list[np.ndarray],
    scores: np.ndarray,
    boxes: int,
    threshold: float,
    match: Callable[[np.ndarray, float], np.ndarray],
) -> PrecisionRecall:
    right = np.concatenate([np.zeros(0, bool), *(match(here, threshold) >= 0 for here in overlaps)])
    order = np.argsort(-scores, kind="stable")
    right = right[order]
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(hits) + 1)
    recall = hits / boxes if boxes else np.zeros(len(hits))
    return PrecisionRecall(scores[order], right, precision, recall, boxes)


def _falling(precision: np.ndarray) -> np.ndarray:
    """Return, at each point, the best precision there or later."""
    return np.maximum.accumulate(precision[::-1])[::-1]


def _match_voc(overlaps: np.ndarray, threshold: float) -> np.ndarray:
    """Return the box (column) that each detection (row, best first) takes, or −1: its own best, if that is free."""
    taken = np.full(len(overlaps), -1)
    if overlaps.shape[1] == 0:
        return taken
    for row, best in enumerate(overlaps.argmax(axis=1)):
        if overlaps[row, best] >= threshold and best not in taken[:row]:
            taken[row] = best
    return taken


def _match_coco(overlaps: np.ndarray, threshold: float) -> np.ndarray:
    """Return the box (column) that each detection (row, best first) takes, or −1: the best of those still free."""
    taken, free = np.full(len(overlaps), -1), np.ones(overlaps.shape[1], bool)
    for row in range(len(overlaps)):
        candidates = np.where(free, overlaps[row], -1.0)
        if candidates.size == 0 or candidates.max() < min(threshold, _NEARLY_ONE):
            continue
        # Of equal overlaps pycocotools takes the last.
        taken[row] = len(candidates) - 1 - int(candidates[::-1].argmax())
        free[taken[row]] = False
    return taken
