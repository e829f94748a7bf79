"""Lab 06, Convolution and cuDNN: the three passes of a convolution, from the definition to the library's speed.

`forward`, `backward_data` and `backward_filter` check their arrays and take any padding, stride, dilation and groups;
`ladder` has the steps by name. Steps 1 to 4 and those beside the ladder run on any GPU from compute capability 8.0 on
and in the simulator; step 5 uses Hopper's own instructions: an H100, an H200, or the simulator. `recordings` holds what
was measured on an H100 and an H200.
"""

from kernels.convolution.convolve import backward_data, backward_filter, forward
from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["Convolution", "backward_data", "backward_filter", "forward", "recordings"]
