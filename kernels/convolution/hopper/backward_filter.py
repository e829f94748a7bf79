"""The gradient of w on Hopper: how wgmma_backward_filter.cu is tiled, how the pixels are split, how it is launched."""

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernels.convolution.common.sources import FOLDER, INCLUDE, sizes
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import wgmma_im2col
from kernels.convolution.hopper.forward import FORMATS, WgmmaStep
from kernels.convolution.hopper.tile_sizes import BOX_BYTES, DEPTH, MAX_SHARED_BYTES, STATIC_BYTES
from kernels.convolution.hopper.wgmma_im2col import View
from warpcourse.bench import hopper
from warpcourse.bench.hopper import Boxes
from warplab import cp

FILE = FOLDER / "hopper/wgmma_backward_filter.cu"
BOX = 64  # filters or channels of a box
QUAD = 4  # elements of dw that a thread of conv_add_splits computes
MOST_STAGES = 12

# What `seconds` reckons with: a fact of an H100 SXM, then what fits 400 times of ResNet-50's layers at batch 32,
# within 7 % on average (H100 80GB HBM3, 2026-11-22).
PRODUCTS = 2048  # of float16, added up, in a clock of a multiprocessor
CLOCK = 1.7e9  # of the tensor cores under load, per second
SHARED_BYTES = 107  # of shared memory in a clock, of 128
CACHE_BYTES = 10e12  # per second, from the L2 cache or through it
MEMORY_BYTES = 2.5e12  # per second
LAUNCH, ADDITION = 3.5e-6, 1.2e-6  # seconds of a launch, and of the second kernel with nothing to add
SUMMED_BYTES = 1.6e12  # of partial sums per second, written and read
WARP, ADDING_THREADS, MOST_TOGETHER = 32, 256, 32  # of conv_add_splits
BUSY_THREADS = 2048  # that keep a multiprocessor busy


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
        """Return stages that fit into shared memory."""
        return min(MOST_STAGES, (MAX_SHARED_BYTES - 2 * STATIC_BYTES) // self.stage_bytes)

    @property
    def stage_bytes(self) -> int:
        """Return shared memory of 64 pixels' operands."""
        return (self.filters + self.taps) * BOX_BYTES

    @property
    def shared_bytes(self) -> int:
        """Return dynamic shared memory of a block."""
        return self.stages * self.stage_bytes + STATIC_BYTES

    @property
    def threads(self) -> int:
        """Return threads of a block: the warpgroups', and a warp's that loads."""
        return 128 * self.groups + 32

    @property
    def options(self) -> tuple[str, ...]:
        """Return options for the compiler."""
        given = {"FILTER_BOXES": self.filters, "TAP_BOXES": self.taps, "GROUPS": self.groups, "STAGES": self.stages}
        return tuple(f"-D{name}={value}" for name, value in given.items())

    @property
    def clocks(self) -> float:
        """Return the clocks of a multiprocessor for a stage: the tensor cores', or shared memory's where these are
        more.

        From there wgmma reads the filters' boxes, and the taps' for each of them; TMA writes all once.
        """
        products = self.filters * self.taps * BOX * BOX * DEPTH / PRODUCTS
        boxes = self.filters * (1 + self.taps) + self.filters + self.taps
        return max(products, boxes * BOX_BYTES / SHARED_BYTES)

    def count(self, conv: Convolution) -> int:
        """Return tiles of dw."""
        boxes = math.ceil(conv.c // conv.groups / BOX) * conv.r * conv.s
        return conv.groups * math.ceil(conv.k // conv.groups / BOX / self.filters) * math.ceil(boxes / self.taps)


class Tiling(NamedTuple):
    """A tile, and how many blocks share the pixels of each."""

    tile: Tile
    splits: int


TILES = tuple(
    Tile(*sizes) for sizes in ((1, 1, 1), (1, 2, 1), (2, 1, 2), (1, 3, 1), (1, 4, 1), (2, 2, 2), (2, 3, 2), (2, 4, 2))
)


def tiling(conv: Convolution) -> Tiling:
    """Return the tile and the splits that should take the least time on an H100 of this card's multiprocessors."""
    return _tiling(conv, hopper.multiprocessors())


@functools.lru_cache(maxsize=1024)
def _tiling(conv: Convolution, sms: int) -> Tiling:
    """Choose of each tile with enough splits for one block per multiprocessor, with half of them, and with one."""
    steps = math.ceil(conv.gemm[0] / DEPTH)
    most = {tile: max(1, min(steps, sms // tile.count(conv))) for tile in TILES}
    found = (Tiling(tile, splits) for tile in TILES for splits in sorted({1, max(1, most[tile] // 2), most[tile]}))
    return min(found, key=lambda tiling: seconds(tiling, conv, sms))


def seconds(tiling: Tiling, conv: Convolution, sms: int) -> float:
    """Return about how long a tiling takes on an H100: what bounds the product most, and the addition of the splits."""
    tile, splits = tiling
    pixels, filters = conv.gemm[0], conv.k
    steps, blocks = math.ceil(pixels / DEPTH), splits * tile.count(conv)
    turns = math.ceil(blocks / sms) * math.ceil(steps / splits)
    read = conv.c * (conv.n * conv.h * conv.w if max(conv.r, conv.s) > 1 else pixels)  # of x, by taps of any stride
    bounds = (
        turns * tile.clocks / CLOCK,
        turns * min(blocks, sms) * tile.stage_bytes / CACHE_BYTES,
        2 * (read + pixels * filters) / MEMORY_BYTES,
    )
    summed = 4 * splits * stride_of(conv)
    return LAUNCH + max(bounds) + (ADDITION + summed / SUMMED_BYTES if splits > 1 else 0)


@dataclass(frozen=True)
class WgmmaBackwardFilterStep(WgmmaStep):
    """wgmma_backward_filter.cu, two kernels where the pixels are split. TMA walks x as in a forward pass."""

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the splits' sums."""
        splits = tiling(conv).splits
        return 4 * splits * stride_of(conv) if splits > 1 else 0

    def launch(
        self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None, chosen: Tiling | None = None
    ) -> None:
        """Queue the kernels, by the tiling that `tiling` makes unless another is given."""
        tile, splits = chosen or tiling(conv)
        if splits > 1:
            size = 4 * splits * stride_of(conv)
            partial = (cp.empty(size, np.uint8) if workspace is None else workspace[:size]).view(np.float32)
            options = multiply(x, dy, partial, conv, tile, splits, View())
            _add(partial, dw, conv, splits, options)
        else:
            multiply(x, dy, dw, conv, tile, splits, View())


BACKWARD_FILTER = (WgmmaBackwardFilterStep(None, "wgmma_backward_filter", FORMATS, 16),)


def multiply(
    x: Any, dy: Any, to: Any, conv: Convolution, tile: Tile, splits: int, view: View, *, early: bool = False
) -> tuple[str, ...]:
    """Queue the product, to dw in float16 or to the splits' sums in float32; return the options it is compiled with.

    `early`: as of a launch.
    """
    flat, partial = wgmma_im2col.is_flat(conv) and not view.strides, to.dtype == np.float32
    options = *INCLUDE, f"-DFLAT={int(flat)}", *tile.options, *(("-DPARTIAL=1",) if partial else ())
    rows = splits * conv.groups * _rounded(conv.k // conv.groups) if partial else conv.k
    of_x = _map_of_pixels(x, conv.c) if flat else _map_of_windows(x, conv, view)
    maps = _map_of_pixels(dy, conv.k), of_x, _map_of_filters(to, conv, rows)
    product = hopper.kernel(FILE, "conv_wgmma_backward_filter", options)
    arguments = *maps, sizes(conv), np.int32(splits)
    product((tile.count(conv) * splits,), (tile.threads,), arguments, tile.shared_bytes, early=early)
    return options


def _add(partial: Any, dw: Any, conv: Convolution, splits: int, options: tuple[str, ...]) -> None:
    """Queue the kernel that adds the splits' sums. It may start while the last of them are written."""
    quads, busy = math.prod(conv.w_shape()) // QUAD, hopper.multiprocessors() * BUSY_THREADS
    together = 1  # threads that share the splits of a quad: more where dw alone would not keep the GPU busy
    while together < MOST_TOGETHER and 2 * together <= splits and quads * together < busy:
        together *= 2
    wide = max(WARP, ADDING_THREADS // together)
    function = hopper.kernel(FILE, "conv_add_splits", options)
    numbers = map(np.int32, (quads, stride_of(conv) // QUAD, splits))
    function((math.ceil(quads / wide),), (wide, together), (partial, dw, *numbers), early=True)


def _rounded(filters: int) -> int:
    """Return filters of a split's sums, in whole boxes."""
    return math.ceil(filters / BOX) * BOX


def stride_of(conv: Convolution) -> int:
    """Return the number of elements from a split's sums to the next split's."""
    return conv.groups * _rounded(conv.k // conv.groups) * conv.r * conv.s * (conv.c // conv.groups)


def _map_of_filters(array: Any, conv: Convolution, filters: int) -> np.ndarray:
    """Return a map for boxes to be written: 64 filters of one tap, 128 bytes of channels."""
    columns = hopper.LINE_BYTES // array.dtype.itemsize
    channels, taps = conv.c // conv.groups, conv.r * conv.s
    boxes = Boxes(hopper.address_of(array), array.dtype.name, filters, channels, BOX, columns, taps)
    return hopper.encoded(boxes)


def _map_of_pixels(array: Any, channels: int) -> np.ndarray:
    """Return a map for boxes of 64 pixels of an NHWC tensor, one after the other, and 64 channels."""
    pixels = array.size // channels
    return hopper.encoded(Boxes(hopper.address_of(array), "float16", pixels, channels, DEPTH, BOX))


def _map_of_windows(x: Any, conv: Convolution, view: View) -> np.ndarray:
    """Return a map for boxes of 64 channels of the pixels that a tap meets in 64 windows, one after the other."""
    phase, shape = wgmma_im2col.forward_phase(conv), (conv.n, conv.h, conv.w, view.channels or conv.c)
    strides = view.strides or wgmma_im2col.dense(conv.h, conv.w, conv.c)
    return hopper.encoded(wgmma_im2col.pixels_of(hopper.address_of(x), shape, phase, DEPTH, strides, BOX))
