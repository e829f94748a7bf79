"""Launches of 5_wgmma_im2col.cu for the forward pass and for the gradient of x.

The gradient of x is itself a convolution of dy, with the filters turned round. A stride divides the pixels of dx into
phases, (row modulo the stride's height, column modulo its width): a window of y meets those of one phase with the same
taps, so each phase is a convolution of stride 1 with some of the taps, one `Part` of a launch.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.sources import FOLDER
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper.tile_sizes import BOX_BYTES, DEPTH, Im2colTiles
from warpcourse.bench import hopper
from warpcourse.bench.hopper import Boxes, Pixels

FILE, ENTRY = FOLDER / "hopper/5_wgmma_im2col.cu", "conv_wgmma_im2col"
HALF = 2  # bytes
WIDE = 8  # channels in 16 bytes, which TMA copies
MOST_OFFSET = 255  # pixels from the first tap to the last, in im2col mode
PARTS = 1, 2, 4  # phases of a launch
LINES = BOX_BYTES // hopper.LINE_BYTES

_INTS = (
    *("pixels", "image", "width", "top", "left", "down", "right", "rows", "columns"),
    *("dilation_h", "dilation_w", "first_tap", "next_row", "next_column"),
)
_MAP = hopper.MAP_BYTES
PART = np.dtype(  # of 5_wgmma_im2col.cu
    [
        *((name, f"V{_MAP}") for name in "xwy"),
        *((name, np.int32) for name in _INTS),
        ("rest", f"V{_MAP - 4 * len(_INTS)}"),
    ]
)


@dataclass(frozen=True)
class Axis:
    """Windows along one axis, height or width: `count` of them, the first at `first`, `step` apart, with `taps` taps
    that read `dilation` apart. In the filter the first of these is `first_tap`, the next `next_tap` further.
    """

    count: int
    first: int
    step: int
    taps: int
    dilation: int
    first_tap: int = 0
    next_tap: int = 1

    @property
    def offset(self) -> int:
        """Return pixels from the first tap to the last."""
        return max(0, self.taps - 1) * self.dilation


@dataclass(frozen=True)
class Phase:
    """A part of a pass: windows along height and width. `down`, `right`: its first pixel in the result."""

    height: Axis
    width: Axis
    down: int = 0
    right: int = 0


def forward_phase(conv: Convolution) -> Phase:
    """Return the only part of a forward pass."""
    axes = (
        Axis(count, -padding, stride, taps, dilation)
        for count, padding, stride, taps, dilation in zip(
            (conv.p, conv.q), conv.padding, conv.stride, (conv.r, conv.s), conv.dilation, strict=True
        )
    )
    return Phase(*axes)


def gradient_axis(phase: int, size: int, taps: int, padding: int, stride: int, dilation: int) -> Axis:
    """Return Windows of dy for the elements phase, phase + stride, ... of an axis of dx.

    Element h of dx was multiplied by tap r for the element p of y with p · stride = h + padding - r · dilation.
    """
    common = math.gcd(stride, dilation)
    meeting = [r for r in range(taps) if (phase + padding - r * dilation) % stride == 0]
    count = math.ceil((size - phase) / stride)
    if not meeting:
        return Axis(count, 0, 1, 0, 1)
    last = meeting[-1]  # reads the first element of dy
    first = (phase + padding - last * dilation) // stride
    return Axis(count, first, 1, len(meeting), dilation // common, last, -stride // common)


def gradient_phases(conv: Convolution) -> tuple[Phase, ...]:
    """Return the parts of a gradient of x: those with the deepest sums first, which take the longest."""
    sizes, taps = (conv.h, conv.w), (conv.r, conv.s)
    axes = [
        [
            gradient_axis(phase, sizes[i], taps[i], conv.padding[i], conv.stride[i], conv.dilation[i])
            for phase in range(min(conv.stride[i], sizes[i]))
        ]
        for i in range(2)
    ]
    phases = [Phase(high, wide, a, b) for a, high in enumerate(axes[0]) for b, wide in enumerate(axes[1])]
    return tuple(sorted(phases, key=lambda phase: -phase.height.taps * phase.width.taps))


def refuses(conv: Convolution, of: str) -> str:
    """Return why TMA cannot walk the images of a convolution; "" if it can."""
    if conv.groups != 1:
        return f"takes no groups, and here are {conv.groups}"
    for name, channels in (("C", conv.c), ("K", conv.k)):
        if channels % WIDE:
            return f"copies {WIDE} channels at a time, and {name} is {channels}"
    phases = (forward_phase(conv),) if of == "forward" else gradient_phases(conv)
    image = (conv.h, conv.w) if of == "forward" else (conv.p, conv.q)
    for phase in phases:
        for axis, size, name in zip((phase.height, phase.width), image, ("high", "wide"), strict=True):
            low, high = hopper.CORNERS
            beyond = axis.first + (axis.count - 1) * axis.step + 1 - size
            if axis.step > hopper.MAX_STEP:
                return f"steps {hopper.MAX_STEP} pixels at most, and the stride is {conv.stride}"
            if not (low <= axis.first <= high and low <= beyond <= high and axis.offset <= MOST_OFFSET):
                return f"reaches {-low} pixels beyond an image, and the padded filter reaches further ({name})"
    return ""


def forward_parts(x: Any, w: Any, y: Any, conv: Convolution, tiles: Im2colTiles) -> np.ndarray:
    """Return what the kernel takes for a forward pass, as an array of one element."""
    return _forward_parts(*map(hopper.address_of, (x, w, y)), conv, tiles)


@functools.lru_cache(maxsize=1024)  # a network calls with the same arrays again and again
def _forward_parts(x: int, w: int, y: int, conv: Convolution, tiles: Im2colTiles) -> np.ndarray:
    phase = forward_phase(conv)
    if is_flat(conv):
        of_x = Boxes(x, "float16", conv.n * conv.h * conv.w, conv.c, tiles.bm // tiles.beside, DEPTH)
    else:
        of_x = pixels_of(x, (conv.n, conv.h, conv.w, conv.c), phase, tiles.bm // tiles.beside)
    of_w = Boxes(w, "float16", conv.k, conv.c, tiles.bn, DEPTH, conv.r * conv.s)
    of_y = Boxes(y, "float16", conv.n * conv.p * conv.q, conv.k, LINES, DEPTH)
    return _parts([_part(phase, conv, of_x, of_w, of_y)], 1, conv.c, conv.k)


def gradient_parts(dy: Any, w: Any, dx: Any, conv: Convolution, tiles: Im2colTiles) -> tuple[np.ndarray, ...]:
    """Return what the kernel takes for each launch of a gradient of x."""
    return _gradient_parts(*map(hopper.address_of, (dy, w, dx)), conv, tiles)


@functools.lru_cache(maxsize=1024)
def _gradient_parts(dy: int, w: int, dx: int, conv: Convolution, tiles: Im2colTiles) -> tuple[np.ndarray, ...]:
    of_w = Boxes(w, "float16", conv.k, conv.c, DEPTH, DEPTH, conv.r * conv.s)
    row, lines = conv.w * conv.c * HALF, tiles.bm // tiles.beside
    found = []
    for phase in gradient_phases(conv):
        if is_flat(conv):
            of_dy = Boxes(dy, "float16", conv.n * conv.p * conv.q, conv.k, lines, DEPTH)
        else:
            of_dy = pixels_of(dy, (conv.n, conv.p, conv.q, conv.k), phase, lines)
        positions = phase.height.count, phase.width.count
        strides = conv.h * row, conv.stride[0] * row, conv.stride[1] * conv.c * HALF
        of_dx = Pixels(
            dx + phase.down * row + phase.right * conv.c * HALF,
            "float16",
            (conv.n, *positions, conv.c),
            strides,
            (0, 0),
            positions,
            (1, 1),
            LINES,
        )
        found.append(_part(phase, conv, of_dy, of_w, of_dx))
    most = PARTS[-1]
    groups = [found[start : start + most] for start in range(0, len(found), most)]
    sizes = [next(size for size in PARTS if size >= len(group)) for group in groups]
    return tuple(_parts(group, size, conv.k, conv.c) for group, size in zip(groups, sizes, strict=True))


def is_flat(conv: Convolution) -> bool:
    """Return whether the images are a matrix to the kernel, pixels × channels."""
    return (conv.r, conv.s, conv.padding, conv.stride) == (1, 1, (0, 0), (1, 1))


def launch(parts: np.ndarray, tiles: Im2colTiles, bias: Any, *, relu: bool, flat: bool, gradient: bool) -> None:
    """Queue the kernel."""
    flags = {
        "PARTS": parts["part"].shape[1],
        "FLAT": flat,
        "GRADIENT": gradient,
        "BIAS": bias is not None,
        "RELU": relu,
    }
    options = *tiles.options, *(f"-D{name}={int(value)}" for name, value in flags.items())
    function = hopper.kernel(FILE, ENTRY, options)
    clusters = count_tiles(parts, tiles)
    if tiles.split == 1:  # blocks stay and take tile after tile
        clusters = min(clusters, _resident(function, tiles))
    pointer = np.uint64(0 if bias is None else hopper.address_of(bias))
    function((clusters * tiles.cluster,), (tiles.threads,), (parts, pointer), tiles.shared_bytes)


@functools.cache
def _resident(function: hopper.CubinKernel, tiles: Im2colTiles) -> int:
    """Return how many clusters the GPU can hold at a time."""
    if tiles.cluster == 1:
        return hopper.multiprocessors() * tiles.blocks
    return function.resident_clusters(tiles.cluster, tiles.threads, tiles.shared_bytes)


def count_tiles(parts: np.ndarray, tiles: Im2colTiles) -> int:
    """Return tiles of a launch."""
    channels = int(parts["filters"][0])
    return sum(tiles.tiles(int(pixels), channels) for pixels in parts["part"]["pixels"][0])


def pixels_of(address: int, shape: tuple[int, int, int, int], phase: Phase, lines: int) -> Pixels:
    """Return the window of a phase over an NHWC tensor without gaps."""
    _, height, width, channels = shape
    strides = height * width * channels * HALF, width * channels * HALF, channels * HALF
    axes = phase.height, phase.width
    first, positions, steps = (
        (axes[0].first, axes[1].first),
        (axes[0].count, axes[1].count),
        (axes[0].step, axes[1].step),
    )
    return Pixels(address, "float16", shape, strides, first, positions, steps, lines)


def _part(phase: Phase, conv: Convolution, x: Boxes | Pixels, w: Boxes, y: Boxes | Pixels) -> np.ndarray:
    """Return a `Part` of the kernel."""
    high, wide = phase.height, phase.width
    image = high.count * wide.count
    numbers = {
        "pixels": conv.n * image,
        "image": image,
        "width": wide.count,
        "top": high.first,
        "left": wide.first,
        "down": high.step,
        "right": wide.step,
        "rows": high.taps,
        "columns": wide.taps,
        "dilation_h": high.dilation,
        "dilation_w": wide.dilation,
        "first_tap": high.first_tap * conv.s + wide.first_tap,
        "next_row": high.next_tap * conv.s,
        "next_column": wide.next_tap,
    }
    part = np.zeros(1, PART)
    for name, value in numbers.items():
        part[name] = value
    for name, what in (("x", x), ("w", w), ("y", y)):
        part[name] = np.frombuffer(hopper.encoded(what).tobytes(), f"V{_MAP}")
    return part


def _parts_type(size: int) -> np.dtype:
    """Return `Parts` of 5_wgmma_im2col.cu."""
    return np.dtype([("part", PART, (size,)), ("channels", np.int32), ("filters", np.int32), ("rest", f"V{_MAP - 8}")])


def _parts(found: list[np.ndarray], size: int, channels: int, filters: int) -> np.ndarray:
    """Return `Parts` of the kernel, an array of one element; parts beyond the ones found have no pixels."""
    parts = np.zeros(1, _parts_type(size))
    each = parts[0]["part"]
    for i, part in enumerate(found):
        each[i] = part[0]
    for name in ("image", "width"):  # divided by
        each[name] = np.maximum(each[name], 1)
    parts["channels"], parts["filters"] = channels, filters
    parts.flags.writeable = False
    return parts
