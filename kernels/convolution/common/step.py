"""`Step`: one way to compute a pass of a convolution. Subclasses say what they launch; `ladder` lists them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.queued import Queued
from kernels.convolution.definition.geometry import Convolution
from warplab import cp


@dataclass(frozen=True)
class Step:
    """One way to compute the forward pass, the gradient of x ("backward_data") or that of w ("backward_filter").

    `number`: on the ladder, None beside it. `formats`: pairs of layout and type, such as ("NHWC", "float16"), one
    layout for a type at most, so that an array's type tells its layout. `alignment`: bytes that the addresses of its
    arrays must be a multiple of.
    """

    number: int | None
    name: str
    formats: tuple[tuple[str, str], ...]
    alignment: int = 1

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Return why the step cannot compute this convolution, and what to take instead; "" if it can.

        Subclasses ask this first, and then say what they want of `conv`.
        """
        name = np.dtype(dtype).name
        if (layout, name) in self.formats:
            return ""
        takes = " or ".join(f"{known} in {order}" for order, known in self.formats)
        return f'{self.name} takes {takes}, and not {name} in {layout}: convert the arrays, or take step="auto"'

    def missing(self) -> str:
        """Return what this machine lacks to run the step, and what to take instead; "" where it runs."""
        return ""

    def preferred(self, conv: Convolution, dtype: Any) -> bool:
        """Return whether step="auto" may choose it where it neither refuses nor misses anything."""
        return True

    def remark(self, conv: Convolution, of: str) -> str:
        """Return why this pass may take more than three times as long as cuDNN's; "" where it does not."""
        return ""

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of device memory beside the three arrays."""
        return 0

    def workspace(self, conv: Convolution, dtype: Any) -> Any:
        """Return device memory of `workspace_bytes`, as uint8; None where none is needed."""
        size = self.workspace_bytes(conv, dtype)
        return cp.empty(size, np.uint8) if size else None

    def queued(self, *arrays: Any, **options: Any) -> list[Queued]:
        """Return the launches, in order, without any check of their arguments.

        Arguments: x, w, y, or dy, w, dx, or x, dy, dw, device arrays of the shapes that the convolution gives for the
        layout of their type, and that convolution. `workspace`: uint8, of at least `workspace_bytes`; None allocates
        it. The forward pass takes `bias` before it, float32, one for each filter, or None, and `relu`: the bias is
        added to the float32 sums, then ReLU is taken, then the result is rounded.
        """
        raise NotImplementedError

    def launch(self, *arrays: Any, **options: Any) -> None:
        """Queue the kernels on the current stream; arguments as of `queued`."""
        for one in self.queued(*arrays, **options):
            one.launch()
