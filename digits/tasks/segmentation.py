"""Segmentation: a class, or ground, for each pixel; cross-entropy over pixels; pixel accuracy and mean IoU."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from digits.tasks import masks
from digits.training.task import Targets, Task


class Segmentation(Task):
    kind = "segmentation"
    figures: ClassVar = {"mean_iou": "higher", "pixel_accuracy": "higher"}
    main = "mean_iou"

    @property
    def values(self) -> int:
        """Return how many values a pixel of a mask may have: ground and classes."""
        return self.classes + 1

    def targets(self, truth: NDArray[np.uint8]) -> Targets:
        return {"mask": np.asarray(truth, np.int32)}

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
