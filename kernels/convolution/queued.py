"""`Queued`: a launch with its kernel, grid and arguments, to be run here or compared with Nsight Compute."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernels.convolution.sources import SOURCES
from warplab.bench.lab_kernels import Size, launch


class Queued(NamedTuple):
    """A launch of the kernel `entry` of `file`, with its grid, its block and its arguments."""

    file: str
    entry: str
    grid: Size
    block: Size
    arguments: tuple

    def function(self) -> Any:
        """The compiled kernel of the active backend."""
        return SOURCES.function(self.file, self.entry)

    def launch(self) -> None:
        """Queue it on the current stream, without any check."""
        launch(self.function(), self.grid, self.block, self.arguments)
