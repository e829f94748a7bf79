"""Step 5: the forward pass by wgmma, with tiles that TMA brings in im2col mode. Compute capability 9.0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernels.convolution import hopper_kernel, hopper_tiles
from kernels.convolution.geometry import Convolution
from kernels.convolution.hopper_tiles import Tiles
from kernels.convolution.step import ForwardStep
from warplab.bench import hopper

FORMATS = (("NHWC", "float16"),)
INSTEAD = "mma_nhwc"
BIAS_ALIGNMENT = 8  # bytes; the kernel reads two of them at a time


@dataclass(frozen=True)
class WgmmaStep(ForwardStep):
    """5_wgmma_im2col.cu. C and K must be multiples of 8."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Why it cannot compute this convolution."""
        if refusal := super().refuses(conv, layout, dtype):
            return refusal
        reason = hopper_kernel.refuses(conv, "forward")
        return f"{self.name} {reason}: take {INSTEAD}" if reason else ""

    def missing(self) -> str:
        """What this machine lacks."""
        return hopper.missing(self.name, INSTEAD)

    def preferred(self, conv: Convolution, dtype: Any) -> bool:
        """Only on a GPU: the simulator runs it, but others are simulated sooner."""
        return hopper.available()

    def launch(
        self,
        x: Any,
        w: Any,
        y: Any,
        conv: Convolution,
        bias: Any = None,
        relu: bool = False,
        workspace: Any = None,
        tiles: Tiles | None = None,
    ) -> None:
        """Queue the kernel, with the sizes that `hopper_tiles` says unless others are given."""
        if bias is not None and hopper.address_of(bias) % BIAS_ALIGNMENT:
            bias = bias.copy()
        tiles = tiles or hopper_tiles.chosen(conv, "forward")
        parts = hopper_kernel.forward_parts(x, w, y, conv, tiles)
        flat = hopper_kernel.is_flat(conv)
        hopper_kernel.launch(parts, tiles, bias, relu=relu, flat=flat, gradient=False)


FORWARD = (WgmmaStep(5, "wgmma_im2col", FORMATS, 16),)
