"""Step 1, a thread for each element of y, in CUDA C++ and in Numba."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.sources import SOURCES, sizes
from kernels.convolution.common.step import ForwardStep
from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.lab_kernels import launch
from warplab import cp

BLOCK = 256  # threads
FP32 = (("NCHW", "float32"),)


@dataclass(frozen=True)
class DirectStep(ForwardStep):
    """1_direct.cu."""

    def grid(self, conv: Convolution) -> int:
        """Return blocks: a thread for each element of y."""
        return math.ceil(math.prod(conv.y_shape()) / BLOCK)

    def function(self) -> Any:
        """Return the compiled kernel of the active backend."""
        return SOURCES.function("steps/1_direct.cu", "conv_direct")

    def launch(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> None:
        """Queue the kernel."""
        launch(self.function(), self.grid(conv), BLOCK, (x, w, bias, y, sizes(conv), np.int32(relu)))


@dataclass(frozen=True)
class NumbaDirectStep(DirectStep):
    """The same kernel in numba_kernels.py."""

    def function(self) -> Any:
        """Return the dispatcher of the active backend."""
        return SOURCES.function("steps/numba_kernels.py", "conv_direct")

    def launch(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> None:
        """Queue the kernel."""
        bias = cp.empty(0, np.float32) if bias is None else bias
        arguments = x, w, bias, y, conv.padding, conv.stride, conv.dilation, np.int32(relu)
        launch(self.function(), self.grid(conv), BLOCK, arguments)


FORWARD = (NumbaDirectStep(None, "numba_direct", FP32), DirectStep(1, "direct", FP32))
