"""What grading knows of each framework of deep learning that an exercise may use: one record each.

Submissions to such an exercise run in processes that have it. The judge never imports it: its tests get NumPy arrays.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Framework:
    """A framework. `name`: in messages. `warmth`: of the zygote that has imported it. `modules`: top-level ones.

    `processes`: threads that a submission may start beyond the usual limit; `processors`: on how many it starts.
    `environment`: variables of every student's process. `warm`: imports it in a zygote, and starts no threads, which no
    fork copies. `plain`: makes a NumPy array or scalar of one of its values and a list of a list of its own, without
    importing it; any other value stays as it is.
    """

    name: str
    warmth: str
    modules: frozenset[str]
    processes: int
    processors: int
    environment: Mapping[str, str]
    warm: Callable[[], None]
    plain: Callable[[Any], Any]


def _warm_tensorflow() -> None:
    """Import TensorFlow, and compute nothing with it: its first tensor would start threads."""
    tf = importlib.import_module("tensorflow")
    _ = tf.keras.layers  # it imports Keras when first asked for it


def _plain_of_tensorflow(value: Any) -> Any:
    """Return the array of an eager tensor, a variable or IndexedSlices. A symbolic tensor, without a value, stays."""
    tf = sys.modules.get("tensorflow")
    if tf is None or not hasattr(tf, "Tensor"):
        return value
    if isinstance(value, list) and type(value).__module__.startswith("tensorflow."):  # tf.Module's list of variables
        return list(value)
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    variable = getattr(sys.modules.get("keras"), "Variable", None)  # Keras's are not TensorFlow's
    kinds = (tf.Tensor, tf.Variable, variable) if isinstance(variable, type) else (tf.Tensor, tf.Variable)
    return value.numpy() if isinstance(value, kinds) and hasattr(value, "numpy") else value


TENSORFLOW = Framework(
    name="TensorFlow",
    warmth="tensorflow",
    modules=frozenset(("tensorflow", "keras")),
    # It starts one thread per processor for several of its pools, so it starts on two, whatever the machine has: 17
    # threads more for the first function that XLA compiles, 25 in all (TensorFlow 2.21, two cores of an x86-64 machine,
    # 2026-11-22).
    processes=64,
    processors=2,
    environment={"TF_NUM_INTRAOP_THREADS": "2", "TF_NUM_INTEROP_THREADS": "2", "TF_CPP_MIN_LOG_LEVEL": "3"},
    warm=_warm_tensorflow,
    plain=_plain_of_tensorflow,
)

FRAMEWORKS = (TENSORFLOW,)
