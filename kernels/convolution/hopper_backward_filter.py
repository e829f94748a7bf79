"""The gradient of w on Hopper: how wgmma_backward_filter.cu is tiled, how the pixels are split, how it is launched."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernels.convolution import hopper_kernel
from kernels.convolution.geometry import Convolution
from kernels.convolution.hopper_forward import FORMATS
from kernels.convolution.hopper_tiles import BOX_BYTES, DEPTH, MAX_SHARED_BYTES, STATIC_BYTES
from kernels.convolution.sources import FOLDER, sizes
from kernels.convolution.step import BackwardFilterStep
from warplab import cp
from warplab.bench import hopper
from warplab.bench.hopper import Boxes

FILE = FOLDER / "wgmma_backward_filter.cu"
INSTEAD = "mma_nhwc"
BOX = 64  # filters or channels of a box
QUAD = 4  # elements of dw that a thread of conv_add_splits computes
MOST_STAGES = 12
WARP, ADDING_THREADS, MOST_TOGETHER = 32, 256, 32  # of conv_add_splits
BUSY_THREADS = 132 * 2048  # that keep an H100 busy


@dataclass(frozen=True)
class Tile:
    """What a block computes: `filters` × `taps` boxes of 64 × 64 elements of dw.

    `groups`: warpgroups, which share the filters.
    """

    filters: int
    taps: int
    groups: int

    @property
    def stages(self) -> int:
        """Stages that fit into shared memory."""
        return min(MOST_STAGES, (MAX_SHARED_BYTES - 2 * STATIC_BYTES) // self.stage_bytes)

    @property
    def stage_bytes(self) -> int:
        """Shared memory of 64 pixels' operands."""
        return (self.filters + self.taps) * BOX_BYTES

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        return self.stages * self.stage_bytes + STATIC_BYTES

    @property
    def threads(self) -> int:
        """Threads of a block: the warpgroups', and a warp's that loads."""
        return 128 * self.groups + 32

    @property
    def options(self) -> tuple[str, ...]:
        """Options for the compiler."""
        given = {"FILTER_BOXES": self.filters, "TAP_BOXES": self.taps, "GROUPS": self.groups, "STAGES": self.stages}
        return tuple(f"-D{name}={value}" for name, value in given.items())

    def count(self, conv: Convolution) -> int:
        """Tiles of dw."""
        boxes = math.ceil(conv.c / BOX) * conv.r * conv.s
        return math.ceil(conv.k / BOX / self.filters) * math.ceil(boxes / self.taps)


class Plan(NamedTuple):
    """A tile, and how many blocks share the pixels of each."""

    tile: Tile
    splits: int


TILES = tuple(Tile(*sizes) for sizes in ((1, 1, 1), (1, 2, 1), (2, 1, 2), (1, 3, 1), (1, 4, 1), (2, 2, 2), (2, 3, 2)))


@functools.lru_cache(maxsize=1024)
def plan(conv: Convolution, multiprocessors: int = 132) -> Plan:
    """The tile and the splits that should take the least time on an H100."""
    steps = math.ceil(conv.gemm[0] / DEPTH)
    plans = [Plan(tile, max(1, min(steps, multiprocessors // tile.count(conv)))) for tile in TILES]
    return min(plans, key=lambda plan: plan.splits)


@dataclass(frozen=True)
class WgmmaBackwardFilterStep(BackwardFilterStep):
    """wgmma_backward_filter.cu, two kernels where the pixels are split. C and K must be multiples of 8."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Why it cannot compute this gradient."""
        if refusal := super().refuses(conv, layout, dtype):
            return refusal
        reason = hopper_kernel.refuses(conv, "forward")  # TMA walks x as in a forward pass
        return f"{self.name} {reason}: take {INSTEAD}" if reason else ""

    def missing(self) -> str:
        """What this machine lacks."""
        return hopper.missing(self.name, INSTEAD)

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Bytes of the splits' sums."""
        splits = plan(conv).splits
        return 4 * splits * _stride(conv) if splits > 1 else 0

    def launch(
        self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None, chosen: Plan | None = None
    ) -> None:
        """Queue the kernels, by the plan that `plan` makes unless another is given."""
        tile, splits = chosen or plan(conv)
        flat = hopper_kernel.is_flat(conv)
        options = f"-I{FOLDER}", f"-DFLAT={int(flat)}", *tile.options
        product = hopper.kernel(FILE, "conv_wgmma_backward_filter", options)
        if splits > 1:
            size = 4 * splits * _stride(conv)
            partial = (cp.empty(size, np.uint8) if workspace is None else workspace[:size]).view(np.float32)
            to_map = _map_of_filters(partial, conv, splits * _rounded(conv.k))
        else:
            to_map = _map_of_filters(dw, conv, conv.k)
        maps = _map_of_pixels(dy, conv.k), _map_of_pixels(x, conv.c) if flat else _map_of_windows(x, conv), to_map
        grid = (tile.count(conv) * splits,)
        product(grid, (tile.threads,), (*maps, sizes(conv), np.int32(splits)), tile.shared_bytes)
        if splits > 1:
            _add(partial, dw, conv, splits, options)


BACKWARD_FILTER = (WgmmaBackwardFilterStep(None, "wgmma_backward_filter", FORMATS, 16),)


def _add(partial: Any, dw: Any, conv: Convolution, splits: int, options: tuple[str, ...]) -> None:
    """Queue the kernel that adds the splits' sums. It may start while the last of them are written."""
    quads = math.prod(conv.w_shape()) // QUAD
    together = 1  # threads that share the splits of a quad: more where dw alone would not keep the GPU busy
    while together < MOST_TOGETHER and 2 * together <= splits and quads * together < BUSY_THREADS:
        together *= 2
    wide = max(WARP, ADDING_THREADS // together)
    function = hopper.kernel(FILE, "conv_add_splits", options)
    numbers = map(np.int32, (quads, _stride(conv) // QUAD, splits))
    function((math.ceil(quads / wide),), (wide, together), (partial, dw, *numbers), early=True)


def _rounded(filters: int) -> int:
    """Filters of a split's sums, in whole boxes."""
    return math.ceil(filters / BOX) * BOX


def _stride(conv: Convolution) -> int:
    """Elements from a split's sums to the next split's."""
    return _rounded(conv.k) * conv.r * conv.s * conv.c


def _map_of_filters(array: Any, conv: Convolution, filters: int) -> np.ndarray:
    """For boxes to be written: 64 filters of one tap, 128 bytes of channels."""
    columns = hopper.LINE_BYTES // array.dtype.itemsize
    boxes = Boxes(hopper.address_of(array), array.dtype.name, filters, conv.c, BOX, columns, conv.r * conv.s)
    return hopper.encoded(boxes)


def _map_of_pixels(array: Any, channels: int) -> np.ndarray:
    """For boxes of 64 pixels of an NHWC tensor, one after the other, and 64 channels."""
    pixels = array.size // channels
    return hopper.encoded(Boxes(hopper.address_of(array), "float16", pixels, channels, DEPTH, BOX))


def _map_of_windows(x: Any, conv: Convolution) -> np.ndarray:
    """For boxes of 64 channels of the pixels that a tap meets in 64 windows, one after the other."""
    phase = hopper_kernel.forward_phase(conv)
    return hopper.encoded(hopper_kernel.pixels_of(hopper.address_of(x), conv.x_shape("NHWC"), phase, DEPTH))
