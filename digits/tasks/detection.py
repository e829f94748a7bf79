"""Detection, as DIGITS' DetectNet: coverage and boxes on a grid, and the average precision of the boxes it finds.

The loss adds focal cross-entropy of the coverage (Lin et al., 2017, arXiv 1708.02002: right cells count little, and
most hold nothing) and half the distance of the edges in covered cells (L1, as DetectNet), both per covered cell.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from digits.data.dataset import Dataset
from digits.data.scene_drawing import unpack_boxes
from digits.networks.detectnet import STRIDE
from digits.tasks import average_precision, grid
from digits.tasks.average_precision import VOC_THRESHOLD
from digits.tasks.boxes import SCORE
from digits.training.spec import RunSpec
from digits.training.task import Targets, Task

FOCUS = 2.0  # the focal loss's exponent
EDGES_WEIGHT = 0.5
SURE = 0.5  # coverage from which a box counts as found for precision and recall, and is shown
_TINY = 1e-6


class Detection(Task):
    kind = "detection"
    figures: ClassVar = {
        "mAP": "higher",  # PASCAL VOC's
        "mAP_coco": "higher",
        "precision": "higher",
        "recall": "higher",
        "coverage_loss": "lower",
        "box_loss": "lower",
    }
    main = "mAP"
    keep_outputs = True

    def __init__(self, dataset: Dataset, spec: RunSpec) -> None:
        super().__init__(dataset, spec)
        self._grid = (dataset.height // STRIDE, dataset.width // STRIDE)

    def targets(self, truth: NDArray[np.float32]) -> Targets:
        wanted = [grid.targets(boxes, self._grid, STRIDE, self.classes) for boxes in truth]
        coverage, edges, covered = (np.stack(arrays) for arrays in zip(*wanted, strict=True))
        return {"coverage": coverage, "edges": edges, "covered": covered, "boxes": np.asarray(truth)}

    def loss(self, targets: dict[str, Any], outputs: Any) -> Any:
        import tensorflow as tf

        sums = self.sums(targets, outputs)
        covered = tf.maximum(sums["covered"], 1.0)
        return (sums["coverage_loss"] + EDGES_WEIGHT * sums["box_loss"]) / covered

    def sums(self, targets: dict[str, Any], outputs: Any) -> dict[str, Any]:
        import tensorflow as tf

        coverage, edges = outputs
        wanted, covered = targets["coverage"], targets["covered"]
        said = tf.clip_by_value(coverage, _TINY, 1 - _TINY)
        right = wanted * said + (1 - wanted) * (1 - said)  # the probability that was given to what is true
        apart = tf.abs(edges - targets["edges"]) * covered[..., None]
        return {
            "coverage_loss": tf.reduce_sum(-((1 - right) ** FOCUS) * tf.math.log(right)),
            "box_loss": tf.reduce_sum(apart),
            "covered": tf.reduce_sum(covered),
        }

    def measured(self, sums: dict[str, float]) -> dict[str, float]:
        covered = max(sums["covered"], 1.0)
        return {name: sums[name] / covered for name in ("coverage_loss", "box_loss")}

    def validated(self, targets: Targets, outputs: list[NDArray[Any]]) -> dict[str, float]:
        truth = [unpack_boxes(boxes) for boxes in targets["boxes"]]
        found = [grid.detections(coverage, edges, STRIDE) for coverage, edges in zip(*outputs, strict=True)]
        return measured(truth, found, self.classes)


def measured(truth: list[NDArray[Any]], found: list[NDArray[Any]], classes: int) -> dict[str, float]:
    """Return the figures of detections `found`, (n, 6) per image, against `truth`, (n, 5).

    `mAP` is PASCAL VOC's, `mAP_coco` COCO's; `precision` and `recall` are of all boxes with a score of at least 0.5,
    over all classes, matched by VOC's rule (0.0 where nothing is found, or nothing is there).
    """
    sure = [here[here[:, SCORE] >= SURE] for here in found]
    right, given, there = right_given_there(truth, sure, classes)
    return {
        "mAP": average_precision.mean(average_precision.voc(truth, found, classes)),
        "mAP_coco": average_precision.mean(average_precision.coco(truth, found, classes)),
        "precision": right / given if given else 0.0,
        "recall": right / there if there else 0.0,
    }


def right_given_there(truth: list[NDArray[Any]], found: list[NDArray[Any]], classes: int) -> tuple[int, int, int]:
    """Return how many detections are right by VOC's rule, how many there are, and how many true boxes."""
    curves = [average_precision.curve(truth, found, label, VOC_THRESHOLD, "voc") for label in range(classes)]
    right, given = sum(int(curve.right.sum()) for curve in curves), sum(len(curve.right) for curve in curves)
    return right, given, sum(curve.boxes for curve in curves)
