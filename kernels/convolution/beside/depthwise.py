"""Depthwise convolutions, one filter for each channel: how depthwise.cu is launched for the three passes.

The fast kernels are templates of filter, stride and tile, compiled when one is first wanted; what they do not take goes
to kernels for any filter, stride and dilation, a thread for each element.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernels.convolution.common.queued import Queued, address, instance
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution

FILE = "beside/depthwise.cu"
FORMATS = (("NHWC", "float16"), ("NCHW", "float32"))
BLOCK = 128  # threads, as in the kernels
MOST_FILTER = 7  # high and wide, that the fast kernels are compiled for
FAST_STRIDES = (1, 2)
WARP, LEAST_PIXELS = 32, 8  # of y for each thread of backward_filter_any
MOST_PARTIAL = 8 * 132  # blocks of backward_filter, each with sums of its own


class Tile(NamedTuple):
    """What a thread computes: `rows` × `wide` elements of y (of groups of dx), of `vec` neighbouring channels.

    `channels`: of a block, in NHWC. `ahead`: rows that are loaded before the first is used; 0 in backward_filter.
    """

    vec: int
    channels: int
    rows: int
    wide: int
    ahead: int = 0


# By pass, type and stride. Of some two dozen for each, those with the least time over MobileNet's layers at batch 32 on
# an H100, 2026-11-22.
TILES = {
    ("forward", "float16", 1): Tile(4, 64, 7, 2, 3),
    ("forward", "float16", 2): Tile(8, 64, 2, 1, 4),
    ("backward_data", "float16", 1): Tile(4, 64, 4, 2, 6),
    ("backward_data", "float16", 2): Tile(4, 64, 4, 2, 6),
    ("backward_filter", "float16", 1): Tile(4, 64, 7, 2),
    ("backward_filter", "float16", 2): Tile(4, 64, 4, 4),
    **{(kind, "float32", stride): Tile(1, 1, 4, 1, 6) for kind in ("forward", "backward_data") for stride in (1, 2)},
    **{("backward_filter", "float32", stride): Tile(1, 1, 4, 2) for stride in (1, 2)},
}


def refusal(conv: Convolution) -> str:
    """Return why depthwise kernels cannot compute this convolution; "" if they can."""
    if conv.groups == conv.c == conv.k:
        return ""
    return (
        f"depthwise takes as many groups and filters as channels, and not {conv.groups} groups, {conv.c} channels and "
        f'{conv.k} filters: take step="auto"'
    )


def tile(conv: Convolution, kind: str, dtype: Any, address: int = 0) -> Tile | None:
    """Return the tile of the fast kernel that computes a pass; None for the kernel that takes anything.

    `address`: the bitwise or of the arrays' addresses.
    """
    small, taps = max(conv.r, conv.s) <= MOST_FILTER, conv.r * conv.s
    even = conv.stride[0] == conv.stride[1] and conv.stride[0] in FAST_STRIDES
    if not small or not even or (conv.dilation != (1, 1) and conv.stride != (1, 1)):
        return None
    name = np.dtype(dtype).name
    found = TILES[kind, name, conv.stride[0]]
    if taps > 9:
        found = found._replace(vec=min(found.vec, 2), wide=min(found.wide, 2))
        if (kind, name) == ("forward", "float16") and conv.stride[0] == 2:
            found = found._replace(rows=4, wide=2)
        if kind == "backward_filter" and taps > 25:  # its sums would not fit shared memory
            found = found._replace(vec=1)
    while found.vec > 1 and (conv.c % found.vec or address % (found.vec * np.dtype(dtype).itemsize)):
        found = found._replace(vec=found.vec // 2)
    if name == "float16" and conv.c % 64 in range(1, 33):
        found = found._replace(channels=32)
    return found


def _entry(kind: str, conv: Convolution, dtype: Any, chosen: Tile | None) -> str:
    nhwc = np.dtype(dtype) == np.float16
    if chosen is None:
        return instance(f"depthwise_{kind}_any", dtype, nhwc)
    last = chosen[2:4] if kind == "backward_filter" else chosen[2:]
    dilated = (True,) if conv.dilation != (1, 1) else ()
    return instance(f"depthwise_{kind}", dtype, nhwc, *chosen[:2], conv.r, conv.s, conv.stride[0], *last, *dilated)


def _block(dtype: Any, chosen: Tile) -> tuple[int, int]:
    if np.dtype(dtype) == np.float32:
        return BLOCK, 1
    lanes = chosen.channels // chosen.vec
    return lanes, BLOCK // lanes


def _tiles(conv: Convolution, kind: str, chosen: Tile) -> int:
    """Count the tiles of all images, or of their lattices where there is a dilation, of one channel."""
    down, across = conv.p, conv.q
    if kind == "backward_data":
        down, across = (
            (size - 1 + pad) // stride - pad // stride + 1
            for size, pad, stride in zip((conv.h, conv.w), conv.padding, conv.stride, strict=True)
        )
    high, wide = conv.dilation
    down, across = math.ceil(down / high), math.ceil(across / wide)
    return conv.n * high * wide * math.ceil(down / chosen.rows) * math.ceil(across / chosen.wide)


def least(relu: bool) -> np.float32:
    """Return what y is at least, as the forward kernels take it: 0 with ReLU, -∞ without."""
    return np.float32(0 if relu else -math.inf)


def queued(conv: Convolution, kind: str, dtype: Any, arrays: tuple, chosen: Tile | None, *more: Any) -> Queued:
    """Return the launch of the forward pass or of backward_data. `arrays`: as the kernel takes them; `more`: what
    follows."""
    entry = _entry(kind, conv, dtype, chosen)
    arguments = (*arrays, sizes(conv)[0], *more)
    if chosen is None:
        shape = conv.y_shape() if kind == "forward" else conv.x_shape()
        return Queued(FILE, entry, math.ceil(math.prod(shape) / BLOCK), (BLOCK, 1), arguments)
    block, tiles = _block(dtype, chosen), _tiles(conv, kind, chosen)
    if np.dtype(dtype) == np.float32:
        return Queued(FILE, entry, math.ceil(conv.c * tiles / BLOCK), block, arguments)
    return Queued(FILE, entry, math.ceil(conv.c / chosen.channels) * math.ceil(tiles / block[1]), block, arguments)


def partial_blocks(conv: Convolution, dtype: Any, chosen: Tile | None) -> tuple[int, int]:
    """Return, of backward_filter, chunks of channels, and blocks for each, which leave so many partial sums."""
    single = np.dtype(dtype) == np.float32
    if chosen is None:
        chunks, lanes = (conv.c, 1) if single else (math.ceil(conv.c / WARP), WARP)
        most = math.ceil(conv.gemm[0] / (BLOCK // lanes) / LEAST_PIXELS)
        return chunks, min(most, math.ceil(MOST_PARTIAL / chunks / conv.r / conv.s))
    chunks = conv.c if single else math.ceil(conv.c / chosen.channels)
    copies = BLOCK if single else _block(dtype, chosen)[1]
    blocks = min(math.ceil(_tiles(conv, "backward_filter", chosen) / copies), math.ceil(MOST_PARTIAL / chunks))
    return chunks, blocks


@dataclass(frozen=True)
class DepthwiseStep(Step):
    """What the steps of the three passes share."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Refuse what is not depthwise."""
        return super().refuses(conv, layout, dtype) or refusal(conv)

    def remark(self, conv: Convolution, of: str) -> str:
        """Return what the kernels for any filter are."""
        if tile(conv, of, np.float16):
            return ""
        return "a thread for each element, as no fast kernel has this filter, stride or dilation"


@dataclass(frozen=True)
class DepthwiseForward(DepthwiseStep):
    """y, with bias and ReLU in the same kernel."""

    def queued(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> list[Queued]:
        """Return the one launch."""
        chosen = tile(conv, "forward", y.dtype, address(x, w, y))
        return [queued(conv, "forward", y.dtype, (x, w, bias, y), chosen, least(relu))]


@dataclass(frozen=True)
class DepthwiseBackwardData(DepthwiseStep):
    """The gradient of x."""

    def queued(self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None) -> list[Queued]:
        """Return the one launch."""
        chosen = tile(conv, "backward_data", dx.dtype, address(dy, w, dx))
        return [queued(conv, "backward_data", dx.dtype, (dy, w, dx), chosen)]


@dataclass(frozen=True)
class DepthwiseBackwardFilter(DepthwiseStep):
    """The gradient of w: sums of blocks in the workspace, then their sum, always in the same order."""

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the partial sums, float32, at the most blocks that an address asks for."""
        found = (tile(conv, "backward_filter", dtype, address) for address in (0, 2, 4, 8))
        blocks = max(partial_blocks(conv, dtype, one)[1] for one in found)
        return 4 * conv.c * conv.r * conv.s * blocks

    def queued(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> list[Queued]:
        """Return the launches of the sums of blocks and of their sum."""
        dtype, size, count = dw.dtype, sizes(conv)[0], conv.c * conv.r * conv.s
        chosen = tile(conv, "backward_filter", dtype, address(x, dy))
        entry = _entry("backward_filter", conv, dtype, chosen)
        partial = (self.workspace(conv, dtype) if workspace is None else workspace).view(np.float32)
        chunks, blocks = partial_blocks(conv, dtype, chosen)
        add, extent = instance("depthwise_add_partial", dtype), map(np.int32, (conv.c, conv.r * conv.s, blocks))
        arguments = x, dy, partial, size, np.int32(blocks)
        grid, block = (chunks * blocks, _block(dtype, chosen)) if chosen else (chunks * count // conv.c * blocks, BLOCK)
        return [
            Queued(FILE, entry, grid, block, arguments),
            Queued(FILE, add, math.ceil(count / 32), (32, 32), (partial, dw, *extent)),
        ]


FORWARD = (DepthwiseForward(None, "depthwise", FORMATS),)
BACKWARD_DATA = (DepthwiseBackwardData(None, "depthwise", FORMATS),)
BACKWARD_FILTER = (DepthwiseBackwardFilter(None, "depthwise", FORMATS),)
