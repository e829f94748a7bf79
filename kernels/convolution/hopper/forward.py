"""Step 5: the forward pass by wgmma, with tiles that TMA brings in im2col mode. Compute capability 9.0."""

from dataclasses import dataclass
from typing import Any, ClassVar

from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import tile_sizes, wgmma_im2col
from kernels.convolution.hopper.tile_sizes import Im2colTiles
from warpcourse.bench import hopper

FORMATS = (("NHWC", "float16"),)
INSTEAD = "mma_nhwc"


@dataclass(frozen=True)
class WgmmaStep(Step):
    """What the steps by wgmma share. C and K must be multiples of 8. `walks`: the pass whose images TMA walks."""

    walks: ClassVar[str] = "forward"

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Refuse images that TMA cannot walk, too."""
        if refusal := super().refuses(conv, layout, dtype):
            return refusal
        reason = wgmma_im2col.refuses(conv, self.walks)
        return f"{self.name} {reason}: take {INSTEAD}" if reason else ""

    def missing(self) -> str:
        """Return what this machine lacks."""
        return hopper.missing(self.name, INSTEAD)

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of sums in global memory, where blocks share a depth."""
        pixels, channels = (conv.p * conv.q, conv.k) if self.walks == "forward" else (conv.h * conv.w, conv.c)
        return wgmma_im2col.partial_bytes(tile_sizes.chosen(conv, self.walks), conv.n * pixels, channels)

    def preferred(self, conv: Convolution, dtype: Any) -> bool:
        """Return whether this is a GPU: the simulator runs it, but others are simulated sooner."""
        return hopper.available()


@dataclass(frozen=True)
class WgmmaForwardStep(WgmmaStep):
    """5_wgmma_im2col.cu."""

    def launch(
        self,
        x: Any,
        w: Any,
        y: Any,
        conv: Convolution,
        bias: Any = None,
        relu: bool = False,
        workspace: Any = None,
        tiles: Im2colTiles | None = None,
    ) -> None:
        """Queue the kernel, with the sizes that `tile_sizes` says unless others are given."""
        wgmma_im2col.forward(x, w, y, conv, tiles or tile_sizes.chosen(conv, "forward"), bias, relu, workspace)


FORWARD = (WgmmaForwardStep(5, "wgmma_im2col", FORMATS, 16),)
