"""Launches of 5_wgmma_im2col.cu for the forward pass and for the gradient of x.

The gradient of x is itself a convolution of dy, with the filters turned round. A stride divides the pixels of dx into
phases, (row modulo the stride's height, column modulo its width): a window of y meets those of one phase with the same
taps, so each phase is a convolution of stride 1 with some of the taps, one `Part` of a launch. So is each group.
"""

import functools
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.sources import FOLDER
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper.tile_sizes import BOX_BYTES, DEPTH, Im2colTiles
from warpcourse.bench import hopper
from warpcourse.bench.hopper import Boxes, Pixels
from warplab import cp

FILE, ENTRY = FOLDER / "hopper/5_wgmma_im2col.cu", "conv_wgmma_im2col"
HALF = 2  # bytes
PRODUCT_DEPTH = 16  # channels that wgmma multiplies
ADDERS = 256  # threads of a block of conv_add_deep
WIDE = 8  # channels in 16 bytes, which TMA copies
MOST_OFFSET = 255  # pixels from the first tap to the last, in im2col mode
PARTS = 1, 2, 4, 8, 16, 32  # of a launch: phases, groups
LINES = BOX_BYTES // hopper.LINE_BYTES

_INTS = (
    *("pixels", "image", "width", "top", "left", "down", "right", "rows", "columns"),
    *("dilation_h", "dilation_w", "first_tap", "next_row", "next_column", "bias", "pitch"),
)
_MAP = hopper.MAP_BYTES
PART = np.dtype(  # of 5_wgmma_im2col.cu
    [
        *((name, f"V{_MAP}") for name in "xwy"),
        *((name, np.int32) for name in _INTS),
        ("to", np.uint64),
        ("rest", f"V{_MAP - 4 * len(_INTS) - 8}"),
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


@dataclass(frozen=True)
class View:
    """How a forward pass reads an x that does not lie as its convolution says, or where its y lies.

    `channels`: of a pixel of x; `strides`: bytes from an image, a row and a pixel of x to the next; `phase`: the
    windows; `pitch`: elements from a pixel of y to the next. None: as the convolution says.
    """

    channels: int | None = None
    strides: tuple[int, int, int] | None = None
    phase: Phase | None = None
    pitch: int | None = None


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
    return unwalkable(phases, (conv.h, conv.w) if of == "forward" else (conv.p, conv.q))


def unwalkable(phases: Iterable[Phase], image: tuple[int, int]) -> str:
    """Return why TMA cannot visit the windows of phases in an image of this height and width; "" if it can."""
    low, high = hopper.CORNERS
    for phase in phases:
        for axis, size, name in zip((phase.height, phase.width), image, ("high", "wide"), strict=True):
            beyond = axis.first + (axis.count - 1) * axis.step + 1 - size
            if axis.step > hopper.MAX_STEP:
                return f"steps {hopper.MAX_STEP} pixels at most, and the stride is {axis.step}"
            if not (low <= axis.first <= high and low <= beyond <= high and axis.offset <= MOST_OFFSET):
                return f"reaches {-low} pixels beyond an image, and the padded filter reaches further ({name})"
    return ""


def forward_parts(
    x: Any, w: Any, y: Any, conv: Convolution, tiles: Im2colTiles, view: View = View()
) -> tuple[np.ndarray, ...]:
    """Return what the kernel takes for each launch of a forward pass, as arrays of one element."""
    return _forward_parts(*map(hopper.address_of, (x, w, y)), conv, tiles, view)


@functools.lru_cache(maxsize=1024)  # a network calls with the same arrays again and again
def _forward_parts(x: int, w: int, y: int, conv: Convolution, tiles: Im2colTiles, view: View) -> tuple[np.ndarray, ...]:
    phase, found = view.phase or forward_phase(conv), []
    c, k, taps, lines = conv.c // conv.groups, conv.k // conv.groups, conv.r * conv.s, tiles.bm // tiles.beside
    outputs, width = conv.n * phase.height.count * phase.width.count, chunk(c)
    for group in range(conv.groups):
        of_x: Boxes | Pixels
        if is_flat(conv) and not view.strides:
            of_x = Boxes(x + group * c * HALF, "float16", outputs, c, lines, width, pitch=conv.c)
        else:
            shape = conv.n, conv.h, conv.w, view.channels or c
            strides = view.strides or dense(conv.h, conv.w, conv.c)
            of_x = pixels_of(x + group * c * HALF, shape, phase, lines, strides, width)
        of_w = Boxes(w + group * k * taps * c * HALF, "float16", k, c, tiles.bn, width, taps)
        to, pitch = y + group * k * HALF, view.pitch or conv.k
        # Without whole 16 bytes no map can be made of y: threads store it, and that of w takes its place.
        of_y = of_w if _direct(conv, view) else Boxes(to, "float16", outputs, k, LINES, DEPTH, pitch=pitch)
        found.append(_part(phase, conv, of_x, of_w, of_y, bias=group * k, pitch=pitch, to=to))
    return _launches(found, c, k)


def gradient_parts(
    dy: Any, w: Any, dx: Any, conv: Convolution, tiles: Im2colTiles, filters: int
) -> tuple[np.ndarray, ...]:
    """Return what the kernel takes for each launch of a gradient of x. `filters`: of w; dy may have more channels."""
    return _gradient_parts(*map(hopper.address_of, (dy, w, dx)), conv, tiles, filters // conv.groups)


@functools.lru_cache(maxsize=1024)
def _gradient_parts(
    dy: int, w: int, dx: int, conv: Convolution, tiles: Im2colTiles, filters: int
) -> tuple[np.ndarray, ...]:
    c, k, taps, lines = conv.c // conv.groups, conv.k // conv.groups, conv.r * conv.s, tiles.bm // tiles.beside
    (image, row, pixel), width = dense(conv.h, conv.w, conv.c), chunk(k)
    found = []
    for phase, group in itertools.product(gradient_phases(conv), range(conv.groups)):
        of_dy: Boxes | Pixels
        if is_flat(conv):
            of_dy = Boxes(dy + group * k * HALF, "float16", conv.n * conv.p * conv.q, k, lines, width, pitch=conv.k)
        else:
            strides = dense(conv.p, conv.q, conv.k)
            of_dy = pixels_of(dy + group * k * HALF, (conv.n, conv.p, conv.q, k), phase, lines, strides, width)
        of_w = Boxes(w + group * filters * taps * c * HALF, "float16", filters, c, width, DEPTH, taps)
        positions = phase.height.count, phase.width.count
        of_dx = Pixels(
            dx + phase.down * row + phase.right * pixel + group * c * HALF,
            "float16",
            (conv.n, *positions, c),
            (image, conv.stride[0] * row, conv.stride[1] * pixel),
            (0, 0),
            positions,
            (1, 1),
            LINES,
        )
        found.append(_part(phase, conv, of_dy, of_w, of_dx, pitch=conv.c))
    return _launches(found, k, c)


def chunk(channels: int) -> int:
    """Return channels of a stage: BK of 5_wgmma_im2col.cu."""
    return next((few for few in (16, 32) if channels <= few), DEPTH)


def dense(height: int, width: int, channels: int) -> tuple[int, int, int]:
    """Return bytes from an image, a row and a pixel to the next."""
    pixel = channels * HALF
    return height * width * pixel, width * pixel, pixel


def _launches(found: list[np.ndarray], channels: int, filters: int) -> tuple[np.ndarray, ...]:
    most = PARTS[-1]
    groups = [found[start : start + most] for start in range(0, len(found), most)]
    sizes = [next(size for size in PARTS if size >= len(group)) for group in groups]
    return tuple(_parts(group, size, channels, filters) for group, size in zip(groups, sizes, strict=True))


def _direct(conv: Convolution, view: View) -> bool:
    return (view.pitch or conv.k) % WIDE > 0 or (conv.groups > 1 and conv.k // conv.groups % WIDE > 0)


def is_flat(conv: Convolution) -> bool:
    """Return whether the images are a matrix to the kernel, pixels × channels."""
    return (conv.r, conv.s, conv.padding, conv.stride) == (1, 1, (0, 0), (1, 1))


def forward(
    x: Any,
    w: Any,
    y: Any,
    conv: Convolution,
    tiles: Im2colTiles,
    bias: Any = None,
    relu: bool = False,
    partial: Any = None,
    view: View = View(),
    *,
    early: bool = False,
) -> None:
    """Queue a forward pass. `partial`: uint8, of `partial_bytes`; None allocates it. `early`: as of a launch."""
    flags = {"BIAS": int(bias is not None), "RELU": int(relu), "FLAT": int(is_flat(conv) and not view.strides)}
    flags["DIRECT"] = int(_direct(conv, view))
    for parts in forward_parts(x, w, y, conv, tiles, view):
        _launch(parts, tiles, bias, y, partial, flags, early)


def gradient(
    dy: Any,
    w: Any,
    dx: Any,
    conv: Convolution,
    tiles: Im2colTiles,
    partial: Any = None,
    *,
    early: bool = False,
    filters: int | None = None,
) -> None:
    """Queue a gradient of x. `partial`, `early`: as of `forward`; `filters`: of w, by default `conv.k`."""
    for parts in gradient_parts(dy, w, dx, conv, tiles, filters or conv.k):
        _launch(parts, tiles, None, dx, partial, {"GRADIENT": 1, "FLAT": int(is_flat(conv))}, early)


def partial_bytes(tiles: Im2colTiles, pixels: int, channels: int) -> int:
    """Return bytes of the sums of blocks that share a depth, of a result of so many pixels and channels."""
    return 4 * tiles.deep * pixels * math.ceil(channels / WIDE) * WIDE if tiles.deep > 1 else 0


def _launch(
    parts: np.ndarray, tiles: Im2colTiles, bias: Any, out: Any, partial: Any, flags: dict[str, int], early: bool
) -> None:
    """Queue the kernel, and the one that adds where blocks share a depth."""
    width = chunk(channels := int(parts["channels"][0]))
    depths = min(width, channels + PRODUCT_DEPTH - 1) // PRODUCT_DEPTH
    flags = {"PARTS": parts["part"].shape[1], "BK": width, "DEPTHS": depths} | flags
    options = *tiles.options, *(f"-D{name}={value}" for name, value in flags.items())
    function = hopper.kernel(FILE, ENTRY, options)
    clusters = count_tiles(parts, tiles)
    if tiles.split == 1:  # blocks stay and take tile after tile
        clusters = min(clusters, _resident(function, tiles))
    pixels, filters = int(parts["part"]["pixels"][0].sum()), int(parts["filters"][0])
    if size := partial_bytes(tiles, pixels, filters):
        partial = cp.empty(size, np.uint8) if partial is None else partial
    of_bias, of_partial = (np.uint64(0 if array is None else hopper.address_of(array)) for array in (bias, partial))
    arguments = parts, of_bias, of_partial
    function((clusters * tiles.cluster,), (tiles.threads,), arguments, tiles.shared_bytes, early=early)
    if size:
        quads = size // tiles.deep // 16
        add = hopper.kernel(FILE, "conv_add_deep", options)
        numbers = np.int32(quads), np.int32(filters), parts["part"]["pitch"][0, 0]
        add((math.ceil(quads / ADDERS),), (ADDERS,), (of_partial, out, of_bias, *numbers), early=True)


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


def pixels_of(
    address: int, shape: tuple[int, int, int, int], phase: Phase, lines: int, strides: tuple[int, int, int], width: int
) -> Pixels:
    """Return the window of a phase over images, NHWC, whose images, rows and pixels are `strides` bytes apart; `width`
    channels at a time."""
    axes = phase.height, phase.width
    first, positions, steps = (
        (axes[0].first, axes[1].first),
        (axes[0].count, axes[1].count),
        (axes[0].step, axes[1].step),
    )
    return Pixels(address, "float16", shape, strides, first, positions, steps, lines, width * HALF)


def _part(phase: Phase, conv: Convolution, x: Boxes | Pixels, w: Boxes, y: Boxes | Pixels, **more: int) -> np.ndarray:
    """Return a `Part` of the kernel; `more`: its `bias`, `pitch` and `to`."""
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
        **more,
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
