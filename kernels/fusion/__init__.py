"""Lab 09, inference and fusion: a small inference optimiser, from a trained network to a plan that an engine runs.

graph       the network as a graph, its interpreter in NumPy and what it costs; `exchange` has Keras and ONNX
passes      each from graph to graph; `optimise` runs them in order, `quantise` calibrates for INT8
trained     the network that the lab optimises, and its images
tactics     which of the kernels in cbr_*.cu, pool.cu, pointwise.cu and softmax.cu can run a layer
plan        the tactics chosen and tensors placed, in a file; `engine` runs it, `served` has it for servers
peers       other engines; `measured` times ours and theirs
lesson      pictures and checks of the lesson; the exercise's are beside this file

`recordings` is what was measured on a GPU. Importing this package imports none of them.
"""

from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["recordings"]
