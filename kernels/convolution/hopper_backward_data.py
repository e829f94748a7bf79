"""The gradient of x by the kernel of step 5: dy takes the place of x, the filters are read as they lie, transposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernels.convolution import hopper_kernel, hopper_tiles
from kernels.convolution.geometry import Convolution
from kernels.convolution.hopper_forward import FORMATS
from kernels.convolution.hopper_tiles import Tiles
from kernels.convolution.step import BackwardDataStep
from warplab.bench import hopper

INSTEAD = "mma_nhwc"


@dataclass(frozen=True)
class WgmmaBackwardDataStep(BackwardDataStep):
    """5_wgmma_im2col.cu. C and K must be multiples of 8."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Why it cannot compute this gradient."""
        if refusal := super().refuses(conv, layout, dtype):
            return refusal
        reason = hopper_kernel.refuses(conv, "backward_data")
        return f"{self.name} {reason}: take {INSTEAD}" if reason else ""

    def missing(self) -> str:
        """What this machine lacks."""
        return hopper.missing(self.name, INSTEAD)

    def preferred(self, conv: Convolution, dtype: Any) -> bool:
        """Only on a GPU: the simulator runs it, but others are simulated sooner."""
        return hopper.available()

    def launch(
        self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None, tiles: Tiles | None = None
    ) -> None:
        """Queue the kernel, with the sizes that `hopper_tiles` says unless others are given."""
        tiles = tiles or hopper_tiles.chosen(conv, "backward_data")
        flat = hopper_kernel.is_flat(conv)
        for parts in hopper_kernel.gradient_parts(dy, w, dx, conv, tiles):
            hopper_kernel.launch(parts, tiles, None, relu=False, flat=flat, gradient=True)


BACKWARD_DATA = (WgmmaBackwardDataStep(None, "wgmma_backward_data", FORMATS, 16),)
