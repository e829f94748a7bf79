"""What a kind of task gives the trainer: batches, a loss, and the figures of a curve's point.

The trainer knows steps, rates, checkpoints and curves; a task knows what images and answers mean. `Classification` is
the shortest example. Tasks are found by name, and imported when one is used.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from digits import networks
from digits.data.augment import Augmentation
from digits.data.dataset import PARTS, TARGETS, Dataset
from digits.files import DigitsError
from digits.training.spec import RunSpec

TASKS = {
    "classification": "digits.training.classification:Classification",
    "detection": "digits.tasks.detection:Detection",
    "segmentation": "digits.tasks.segmentation:Segmentation",
}
Targets = dict[str, NDArray[Any]]


def prepare(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return what a network is given for `images`, uint8 (n, height, width, channels): the same from 0 to 1, float32.

    Training, validation, test and use do alike; no mean is subtracted.
    """
    return np.asarray(images, np.float32) / np.float32(255)


class Task:
    """One kind of task on one dataset. Write `targets`, `loss`, `sums` and `measured`; the rest has defaults.

    The trainer makes one from `(dataset, spec)` and calls, for every step, `batch` in NumPy (a thread prepares the next
    one), then `loss` and `sums` inside one tf.function. `batch` must be a function of its arguments and of
    `spec.solver.seed` alone: a run that was killed and resumed asks again for the same batches.
    """

    kind = ""  # as in RunSpec
    figures: ClassVar[Mapping[str, str]] = {}  # besides the loss: {"accuracy": "higher"}, or "lower", is better
    main = "loss"  # the figure of the validation set that tells which epoch was best
    keep_outputs = False  # whether `validated` wants the outputs for the whole validation set

    def __init__(self, dataset: Dataset, spec: RunSpec) -> None:
        self.dataset, self.spec, self.classes = dataset, spec, len(dataset.classes)
        self._augmentation = Augmentation.from_dict(spec.solver.augment)
        truth = getattr(dataset, TARGETS[self.kind])
        self._arrays = {part: (dataset.images(part), truth(part)) for part in PARTS if dataset.counts.get(part)}

    def build(self) -> Any:
        """Return the untrained keras.Model."""
        options = {key: value for key, value in self.spec.network.items() if key != "name"}
        return networks.build(self.spec.network["name"], self.dataset.shape, self.classes, options)

    def size(self, part: str) -> int:
        """Return how many images `part` ("train", "validation", "test") has."""
        return self.dataset.counts[part]

    def batch(self, part: str, indices: NDArray[np.int64], epoch: int | None) -> tuple[NDArray[np.float32], Targets]:
        """Return the images (n, height, width, channels), from 0 to 1, and what the network should answer.

        `epoch`, from 0: augment as `spec.solver.augment` says, drawn by (seed, epoch, index); None: do not augment.
        """
        images, truth = (array[indices] for array in self._arrays[part])
        if epoch is not None:
            moved = {} if self.kind == "classification" else {TARGETS[self.kind]: truth}  # a label stays as it is
            changed = self._augmentation.apply(images, indices, epoch, self.spec.solver.seed, **moved)
            images, truth = changed if moved else (changed, truth)
        return prepare(images), self.targets(truth)

    def targets(self, truth: NDArray[Any]) -> Targets:
        """Return what the network should answer, from n of the dataset's labels, boxes or masks.

        Each array has n as its first axis, and the same type and further shape in every batch.
        """
        raise NotImplementedError

    def loss(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Return the mean loss over the batch, a scalar tensor of float32. `outputs`: a tensor, or a list of them."""
        raise NotImplementedError

    def sums(self, targets: dict[str, Any], outputs: Any) -> dict[str, Any]:
        """Return scalar tensors, such as {"right": ...}, that are added over batches."""
        return {}

    def measured(self, sums: dict[str, float]) -> dict[str, float]:
        """Return the figures of the added `sums`, among which the trainer puts "count", the number of images."""
        return {}

    def validated(self, targets: Targets, outputs: list[NDArray[Any]]) -> dict[str, float]:
        """Return, with `keep_outputs`, further figures from all targets and outputs of the validation set."""
        return {}


def task_of(dataset: Dataset, spec: RunSpec) -> Task:
    """Return the task of `spec.kind` on `dataset`. Raises DigitsError if the dataset is of another kind."""
    if dataset.kind != spec.kind:
        raise DigitsError(
            f"The dataset {dataset.name} is made for {dataset.kind}, not for {spec.kind}. Choose another dataset."
        )
    module, name = TASKS[spec.kind].split(":")
    return getattr(import_module(module), name)(dataset, spec)
