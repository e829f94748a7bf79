"""What a detector or a segmenter says of a dataset's scenes, and how right it is. NumPy only; the model is asked.

with look.open(run) as inside:
    answers = ask(inside, dataset, "validation")
found = answers.boxes("group")
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from digits.data.dataset import Dataset
from digits.data.scene_drawing import unpack_boxes
from digits.files import DigitsError
from digits.networks.detectnet import STRIDE
from digits.tasks import average_precision, detection, grid, masks
from digits.tasks.boxes import SCORE

KINDS = ("detection", "segmentation")
MOST = 200  # scenes of one question


@dataclass(frozen=True)
class Answers:
    """What a network says of `images`, uint8 (n, h, w, c).

    Detection: `truth` is a list of n arrays (boxes, 5), `said` has the outputs "coverage" and "edges". Segmentation:
    `truth` is uint8 (n, h, w), `said` has "mask", uint8 (n, h, w). `truth` is None for images that nobody labelled.
    """

    kind: str
    classes: tuple[str, ...]
    images: np.ndarray
    truth: Any
    said: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.images)

    def boxes(self, way: str = "group") -> list[np.ndarray]:
        """Return, for each image its detections (m, 6), unsure ones too; `way` as in digits.tasks.grid.detections."""
        pairs = zip(self.said["coverage"], self.said["edges"], strict=True)
        return [grid.detections(coverage, edges, STRIDE, way) for coverage, edges in pairs]


def ask(
    inside: Any,
    dataset: Dataset,
    part: str = "validation",
    most: int = MOST,
    progress: Callable[[float], None] | None = None,
) -> Answers:
    """Ask the model for the first `most` scenes of `part`. Raises DigitsError with a sentence."""
    if dataset.kind not in KINDS:
        raise DigitsError(f"The dataset {dataset.name} is for {dataset.kind}: it has neither boxes nor masks.")
    images = np.array(dataset.images(part)[:most])
    if not len(images):
        raise DigitsError(f"The dataset {dataset.name} has no {part} scenes. Choose another part.")
    if dataset.kind == "detection":
        truth: Any = [unpack_boxes(boxes) for boxes in dataset.boxes(part)[:most]]
    else:
        truth = np.array(dataset.masks(part)[:most])
    return of_images(inside, dataset, images, truth, progress)


def of_images(
    inside: Any,
    dataset: Dataset,
    images: np.ndarray,
    truth: Any = None,
    progress: Callable[[float], None] | None = None,
) -> Answers:
    """Ask the model for `images`, uint8 (n, h, w, c) of the dataset's size. Raises DigitsError with a sentence."""
    outputs = inside.predict(images, progress=progress)
    wanted = {"detection": ("coverage", "edges"), "segmentation": ("probabilities",)}[dataset.kind]
    if missing := [name for name in wanted if name not in outputs]:
        raise DigitsError(f"The network has no output {missing[0]!r}: it is none for {dataset.kind}.")
    for name in wanted:
        _check_output(name, outputs[name], dataset, len(images))
    if dataset.kind == "segmentation":
        outputs = {"mask": outputs["probabilities"].argmax(axis=-1).astype(np.uint8)}
    return Answers(dataset.kind, dataset.classes, images, truth, dict(outputs))


def _check_output(name: str, output: np.ndarray, dataset: Dataset, images: int) -> None:
    """Raise DigitsError for an output of another dataset's network, or of one whose training has diverged."""
    rows, columns, classes = dataset.height // STRIDE, dataset.width // STRIDE, len(dataset.classes)
    fits = {
        "coverage": (images, rows, columns, classes),
        "edges": (images, rows, columns, 4),
        "probabilities": (images, dataset.height, dataset.width, classes + 1),
    }[name]
    if output.shape != fits:
        raise DigitsError(
            f"The network's output {name!r} is {' × '.join(map(str, output.shape[1:]))}, and the dataset "
            f"{dataset.name} asks for {' × '.join(map(str, fits[1:]))}. Train it on this dataset again."
        )
    if not np.isfinite(output).all():
        raise DigitsError(
            "The network answers NaN (no number): its training has diverged. Train again with a lower learning rate."
        )


def sure(found: list[np.ndarray], least: float) -> list[np.ndarray]:
    """Return the detections of each image with a score of at least `least`."""
    return [boxes[boxes[:, SCORE] >= least] for boxes in found]


@dataclass(frozen=True)
class Figures:
    """How right the answers are: `whole`, name to number, and a row for each class.

    Detection: rows (class, true boxes, average precision of VOC, of COCO). Segmentation: rows (class, true pixels,
    IoU), ground first. NaN: the class is not there.
    """

    whole: dict[str, float]
    rows: list[tuple[str, int, float, float]] | list[tuple[str, int, float]]


def detection_figures(answers: Answers, found: list[np.ndarray], least: float) -> Figures:
    """Return figures. `found`: of `answers.boxes`. Precision and recall count scores of at least `least`."""
    classes = len(answers.classes)
    by_voc = average_precision.voc(answers.truth, found, classes)
    by_coco = average_precision.coco(answers.truth, found, classes)
    counts = np.bincount(np.concatenate([boxes[:, 0] for boxes in answers.truth]).astype(int), minlength=classes)
    right, given, there = detection.right_given_there(answers.truth, sure(found, least), classes)
    whole = {
        "mAP": average_precision.mean(by_voc),
        "mAP_coco": average_precision.mean(by_coco),
        "precision": right / given if given else 0.0,
        "recall": right / there if there else 0.0,
    }
    means = [average_precision.mean(c) if n else np.nan for c, n in zip(by_coco.T, counts, strict=True)]
    return Figures(whole, list(zip(answers.classes, counts.tolist(), by_voc.tolist(), map(float, means), strict=True)))


def segmentation_figures(answers: Answers) -> Figures:
    """Return also `ground`, the pixel accuracy of a network that says ground everywhere."""
    counts = masks.confusion(answers.truth, answers.said["mask"], len(answers.classes) + 1)
    whole = {
        "mean_iou": masks.mean_iou(counts),
        "pixel_accuracy": masks.pixel_accuracy(counts),
        "mean_accuracy": masks.mean_accuracy(counts),
        "weighted_iou": masks.weighted_iou(counts),
        "ground": float(counts[0].sum() / counts.sum()),
    }
    names, pixels = ("ground", *answers.classes), counts.sum(axis=1)
    return Figures(whole, list(zip(names, pixels.tolist(), masks.iou_by_value(counts).tolist(), strict=True)))


def mistakes(answers: Answers, found: list[np.ndarray] | None = None) -> np.ndarray:
    """Return how much is wrong in each image, int (n,): boxes wrong and missed (`found`: those shown), or pixels."""
    if answers.kind == "segmentation":
        return (answers.truth != answers.said["mask"]).sum(axis=(1, 2))
    if found is None:
        raise ValueError("mistakes of detections need the detections: give found")
    taken = [average_precision.taken(truth, boxes) for truth, boxes in zip(answers.truth, found, strict=True)]
    rights = [int((rows >= 0).sum()) for rows in taken]
    sizes = [(len(truth), len(boxes)) for truth, boxes in zip(answers.truth, found, strict=True)]
    return np.array([there + given - 2 * right for right, (there, given) in zip(rights, sizes, strict=True)])
