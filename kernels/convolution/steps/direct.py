"""Step 1, a thread for each element of y, in CUDA C++ and in Numba."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.queued import Queued
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from warplab import cp

BLOCK = 256  # threads
FP32 = (("NCHW", "float32"),)


@dataclass(frozen=True)
class DirectStep(Step):
    """1_direct.cu, or with `numba` the same kernel in numba_kernels.py."""

    numba: bool = False

    def queued(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> list[Queued]:
        """Return the one launch."""
        grid = math.ceil(math.prod(conv.y_shape()) / BLOCK)
        if self.numba:
            bias = cp.empty(0, np.float32) if bias is None else bias
            arguments = x, w, bias, y, conv.padding, conv.stride, conv.dilation, np.int32(relu)
            return [Queued("steps/numba_kernels.py", "conv_direct", grid, BLOCK, arguments)]
        arguments = x, w, bias, y, sizes(conv), np.int32(relu)
        return [Queued("steps/1_direct.cu", "conv_direct", grid, BLOCK, arguments)]


FORWARD = (DirectStep(None, "numba_direct", FP32, numba=True), DirectStep(1, "direct", FP32))
