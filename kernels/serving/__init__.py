"""Lab 11, Is the GPU busy? Utilisation, concurrency and serving.

A skeleton, whose one kernel multiplies a vector by a number: replace it by the lab's own. `scale` checks its arrays and
launches one of `KERNELS`; `recordings` holds what was measured on a GPU.
"""

from kernels.serving.scaling import KERNELS, scale
from warplab.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["KERNELS", "recordings", "scale"]
