"""Lab 08, training in less memory.

`silu` holds the lab's kernels; `plan` the arithmetic of recomputation, `resnet` the layers of ResNet-101;
`tape`, `segments` and `process_memory` measure in TensorFlow; `recordings` is what was measured on an H100, and of
ResNet-101 on an H200, through PyTorch and JAX. Importing this package imports none of the three.
"""

from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["recordings"]
