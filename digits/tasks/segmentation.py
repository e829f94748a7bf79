"""Segmentation: a class, or ground, for each pixel; cross-entropy over pixels; pixel accuracy and mean IoU."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from digits.data.augment import Augmentation
from digits.data.dataset import PARTS, Dataset
from digits.tasks import masks
from digits.training.spec import RunSpec
from digits.training.task import Targets, Task, prepare


class Segmentation(Task):
    kind = "segmentation"
    figures: ClassVar = {"mean_iou": "higher", "pixel_accuracy": "higher"}
    main = "mean_iou"

    def __init__(self, dataset: Dataset, spec: RunSpec) -> None:
        super().__init__(dataset, spec)
        self._augmentation = Augmentation.from_dict(spec.solver.augment)
        self._arrays = {part: (dataset.images(part), dataset.masks(part)) for part in PARTS if dataset.counts.get(part)}

    @property
    def values(self) -> int:
        """Return how many values a pixel of a mask may have: ground and classes."""
        return self.classes + 1

    def batch(self, part: str, indices: NDArray[np.int64], epoch: int | None) -> tuple[NDArray[np.float32], Targets]:
        all_images, all_masks = self._arrays[part]
        images, truth = all_images[indices], all_masks[indices]
        if epoch is not None:
            images, truth = self._augmentation.apply(images, indices, epoch, self.spec.solver.seed, masks=truth)
        return prepare(images), {"mask": np.asarray(truth, np.int32)}

    def loss(self, targets: dict[str, Any], outputs: Any) -> Any:
        import tensorflow as tf
        from keras.losses import sparse_categorical_crossentropy

        return tf.reduce_mean(sparse_categorical_crossentropy(targets["mask"], outputs))

    def sums(self, targets: dict[str, Any], outputs: Any) -> dict[str, Any]:
        """Return the table of `masks.confusion`, an entry each."""
        import tensorflow as tf

        values = self.values
        found = tf.argmax(outputs, axis=-1, output_type=tf.int32)
        # A product of one-hot rows: the operation that counts whole numbers is not a deterministic one on a GPU.
        true, said = (tf.one_hot(tf.reshape(mask, [-1]), values) for mask in (targets["mask"], found))
        counts = tf.matmul(true, said, transpose_a=True)
        return {f"{row},{column}": counts[row, column] for row in range(values) for column in range(values)}

    def measured(self, sums: dict[str, float]) -> dict[str, float]:
        counts = np.array([[sums[f"{row},{column}"] for column in range(self.values)] for row in range(self.values)])
        return {"mean_iou": masks.mean_iou(counts), "pixel_accuracy": masks.pixel_accuracy(counts)}
