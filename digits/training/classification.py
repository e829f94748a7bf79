"""Classification: one label for an image, cross-entropy, accuracy."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from digits.training.task import Targets, Task

AUXILIARY = 0.3  # the weight of each further output's loss, as in GoogLeNet (arXiv 1409.4842, section 5)


class Classification(Task):
    kind = "classification"
    figures: ClassVar[Mapping[str, str]] = {"accuracy": "higher"}
    main = "accuracy"

    def targets(self, truth: NDArray[np.int64]) -> Targets:
        return {"label": np.asarray(truth, np.int32)}

    def loss(self, targets: dict[str, Any], outputs: Any) -> Any:
        import tensorflow as tf
        from keras.losses import sparse_categorical_crossentropy

        answer, *others = outputs if isinstance(outputs, list | tuple) else [outputs]
        loss = tf.reduce_mean(sparse_categorical_crossentropy(targets["label"], answer))
        for other in others:
            loss += AUXILIARY * tf.reduce_mean(sparse_categorical_crossentropy(targets["label"], other))
        return loss

    def sums(self, targets: dict[str, Any], outputs: Any) -> dict[str, Any]:
        import tensorflow as tf

        answer = outputs[0] if isinstance(outputs, list | tuple) else outputs
        right = tf.argmax(answer, axis=1, output_type=tf.int32) == targets["label"]
        return {"right": tf.reduce_sum(tf.cast(right, tf.float32))}

    def measured(self, sums: dict[str, float]) -> dict[str, float]:
        return {"accuracy": sums["right"] / sums["count"]}
