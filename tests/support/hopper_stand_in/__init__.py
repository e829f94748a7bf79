"""Kernels for Hopper in the simulator: a header in place of <warplab/hopper.cuh>, and tensor maps as it takes them."""

from pathlib import Path

import numpy as np

from warplab.bench import hopper
from warplab.bench.hopper import Boxes, Pixels
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

STAND_IN = (f"-I{Path(__file__).parent}",)  # option, to stand before the one that finds the course's headers

TENSOR_MAP = np.dtype(  # of warplab/hopper.cuh beside this file
    {
        "names": ["tensor", "item", "lines", "extents", "strides", "first", "positions", "steps"],
        "formats": ["u8", "i4", "i4", "4i4", "4i4", "2i4", "2i4", "2i4"],
        "offsets": [0, 8, 12, 16, 32, 48, 56, 64],
        "itemsize": 128,
    }
)


def encoded(what):
    """What `warplab.bench.hopper.encoded` gives, for the stand-in."""
    if isinstance(what, Boxes):
        middle = what.middle or 1
        extents = what.columns, middle, what.rows, 1
        strides = 1, what.columns, what.columns * middle, 0
        window = (0, 0), (0, 0), (1, 1)
        lines = what.box_rows
    else:
        assert isinstance(what, Pixels)
        images, height, width, channels = what.shape
        extents = channels, width, height, images
        strides = 1, *(stride // what.item for stride in reversed(what.strides))
        window = what.first, what.positions, what.steps
        lines = what.lines
    return np.array([(what.address, what.item, lines, extents, strides, *window)], TENSOR_MAP)


class SimulatedKernel:
    """Takes the place of `warplab.bench.hopper.kernel`: its launches run in the simulator, one after the other."""

    def __init__(self, file, entry, options=()):
        options = *STAND_IN, *hopper.include(), *options
        self.source = CudaSource(file.read_text(encoding="utf-8"), entry, options, file.name)

    def __call__(self, grid, block, arguments, shared_bytes=0, *, early=False):
        simulate(self.source, grid, block, arguments, shared_bytes=shared_bytes, counters=False)
