"""`Step`: one way to compute a pass of a convolution. Subclasses say how they are launched; `ladder` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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

    def layout(self, dtype: Any) -> str:
        """Return the layout of arrays of a type in `formats`."""
        return {known: layout for layout, known in self.formats}[np.dtype(dtype).name]

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

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of device memory beside the three arrays."""
        return 0

    def workspace(self, conv: Convolution, dtype: Any) -> Any:
        """Return device memory of `workspace_bytes`, as uint8; None where none is needed."""
        size = self.workspace_bytes(conv, dtype)
        return cp.empty(size, np.uint8) if size else None


@dataclass(frozen=True)
class ForwardStep(Step):
    """A way to compute y."""

    def launch(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> None:
        """Queue the kernels on the current stream, without any check.

        `x`, `w`, `y`: device arrays of the shapes that `conv` gives for the layout of their type. `bias`: float32, one
        for each filter, or None; it is added to the float32 sums, then ReLU is taken, then the result is rounded.
        `workspace`: uint8, of at least `workspace_bytes`; None allocates it.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class BackwardDataStep(Step):
    """A way to compute the gradient of x."""

    def launch(self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None) -> None:
        """Queue the kernels on the current stream, without any check; see `ForwardStep.launch`."""
        raise NotImplementedError


@dataclass(frozen=True)
class BackwardFilterStep(Step):
    """A way to compute the gradient of w."""

    def launch(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> None:
        """Queue the kernels on the current stream, without any check; see `ForwardStep.launch`."""
        raise NotImplementedError
