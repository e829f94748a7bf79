"""Lab 09, inference and fusion: a small inference optimiser, from a trained network to a plan that an engine runs.

graph       `graph`, `operators`, `validate`, `interpret`; from Keras and ONNX by `keras_import`, `onnx_import`
passes      `passes/`, each from graph to graph; `optimise` runs them in order
precision   `quantise` calibrates, `int8` rounds
kernels     cbr_*.cu, pool.cu, pointwise.cu, softmax.cu; `tactics` is the registry, `tune` chooses
plan        `plan` and `memory_plan`, in a file by `plan_file`; `engine` runs it

`recordings` is what was measured on a GPU. Importing this package imports none of them.
"""

from warplab.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["recordings"]
