"""The gradient of x by the kernel of step 5: dy takes the place of x, the filters are read as they lie, transposed."""

from dataclasses import dataclass
from typing import Any

from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import tile_sizes, wgmma_im2col
from kernels.convolution.hopper.forward import FORMATS, WgmmaStep
from kernels.convolution.hopper.tile_sizes import Im2colTiles


@dataclass(frozen=True)
class WgmmaBackwardDataStep(WgmmaStep):
    """5_wgmma_im2col.cu."""

    walks = "backward_data"

    def launch(
        self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None, tiles: Im2colTiles | None = None
    ) -> None:
        """Queue the kernel, with the sizes that `tile_sizes` says unless others are given."""
        wgmma_im2col.gradient(dy, w, dx, conv, tiles or tile_sizes.chosen(conv, "backward_data"), workspace)


BACKWARD_DATA = (WgmmaBackwardDataStep(None, "wgmma_backward_data", FORMATS, 16),)
