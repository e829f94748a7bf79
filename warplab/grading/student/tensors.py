"""TensorFlow's values as NumPy's, in the student's process: the judge has no TensorFlow and takes only arrays."""

from __future__ import annotations

import sys
from typing import Any


def without_tensors(value: Any) -> Any:
    """Return `value` with a NumPy array or scalar for each eager tensor, variable and IndexedSlices in it.

    Lists, tuples and dicts are looked into; any other value stays as it is. TensorFlow is not imported for this. A
    symbolic tensor, which has no value, stays as well.
    """
    tf = sys.modules.get("tensorflow")
    if tf is None or not hasattr(tf, "Tensor"):
        return value
    return _converted(tf, value, 0)


def _converted(tf: Any, value: Any, depth: int) -> Any:
    kind = type(value)
    if depth < 20:  # as deep as artefacts go; a list may contain itself
        if kind in (list, tuple):
            return kind(_converted(tf, item, depth + 1) for item in value)
        if kind is dict:
            return {key: _converted(tf, item, depth + 1) for key, item in value.items()}
        if isinstance(value, list) and kind.__module__.startswith("tensorflow."):  # tf.Module's list of its variables
            return [_converted(tf, item, depth + 1) for item in value]
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    if isinstance(value, (tf.Tensor, tf.Variable, *_keras_variables())) and hasattr(value, "numpy"):
        return value.numpy()
    return value


def _keras_variables() -> tuple[type, ...]:
    """Return the class of Keras's variables, which are not TensorFlow's; empty if Keras is not imported."""
    found = getattr(sys.modules.get("keras"), "Variable", None)
    return (found,) if isinstance(found, type) else ()
