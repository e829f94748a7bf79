"""Lab 07, training with TensorFlow.

`bias_gelu` holds the lab's kernels, `tensorflow_op` their use in a TensorFlow step; `digits`, `regression`
and `data_centre` are experiments of the lesson that need more than a cell; `recordings` what was measured on an H100.
Importing this package does not import TensorFlow.
"""

from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["recordings"]
