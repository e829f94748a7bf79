"""Step 5's kernels for convolutions that TMA cannot walk as they are, on copies that padded.cu makes (`fitted`):

- channels that are no multiple of 8 are padded with zeros. Few become more: a pixel of the copy has those of all rows
  of a window, padding included, and a window's pixels are read as one, which overlaps with the next;
- groups are parts of a launch; narrow ones are joined to 64 channels, and their filters are zero outside of their own.
  A NaN or an infinity in x is NaN in the results of all groups that are joined with its own;
- images with a stride above 8 or with much padding are unrolled, as im2col does;
- the gradient of a few channels of x is one product for all phases of the stride (`merged`), whose pixels are then put
  in their places.

Compute capability 9.0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels.convolution.common.queued import Queued
from kernels.convolution.common.sources import sizes
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import backward_filter, tile_sizes, wgmma_im2col
from kernels.convolution.hopper.forward import FORMATS, INSTEAD, WgmmaStep
from kernels.convolution.hopper.tile_sizes import DEPTH, HALF, Im2colTiles
from kernels.convolution.hopper.wgmma_im2col import WIDE, Axis, Phase, View, gradient_phases

FILE, NAME = "hopper/padded.cu", "wgmma_padded"
THREADS, ADDED, ADDERS = 256, 32, 8  # of a block; of conv_add_filters elements, and threads for each
PLACE, MOST_ROW = 8, 6144  # bytes, and elements, of what a block of conv_unroll finds first
MOST_ELEMENTS = 2**31 - 2**12  # of a copy
LEAST_GAIN = 2  # times that windows as pixels must have fewer steps, as their copies are larger
ROOM = 256  # bytes that an array in the workspace starts at a multiple of
ROWS = np.dtype([(name, np.int32) for name in ("taps", "inner", "pitch", "high", "channels", "row", "joined")])


@dataclass(frozen=True)
class Fitted:
    """A convolution as step 5 computes it: `conv`, of joined groups, whose x `view` describes.

    `copied`: what unroll_pixels reads of x, and the pixels of a row, elements of a pixel, and of a tap that it writes;
    None where x stays. Of a filter: `taps` rows of `conv.c` / `conv.groups` elements, `inner` pixels of `pitch` in
    each, `high` rows of `channels` in a pixel. `joined`: groups in one.
    """

    conv: Convolution
    view: View
    copied: tuple[Convolution, int, int, int] | None
    taps: int
    inner: int
    pitch: int
    channels: int
    joined: int
    high: int = 1

    @property
    def row(self) -> int:
        """Return elements of a row of a filter."""
        return self.conv.c // self.conv.groups

    def filter_elements(self, filters: int) -> int:
        """Return elements of the copies of so many filters; 0 where these stay."""
        stay = self.copied is None and self.joined == 1 and filters == self.conv.k
        return 0 if stay else up(filters) * self.taps * self.row

    @property
    def rows(self) -> np.ndarray:
        """Return `Rows` of padded.cu."""
        numbers = self.taps, self.inner, self.pitch, self.high, self.channels, self.row, self.joined
        return np.array([numbers], ROWS)

    @property
    def x_elements(self) -> int:
        """Return elements of the copy of x."""
        if self.copied is None:
            return 0
        read, width, row, _ = self.copied
        return read.n * read.p * width * row


def up(value: int, step: int = WIDE) -> int:
    """Return the next multiple of `step`."""
    return math.ceil(value / step) * step


def joined(conv: Convolution) -> int:
    """Return how many groups to join: up to 64 channels, so that channels and filters are multiples of 8; all, where
    nothing less does that."""
    c, k = conv.c // conv.groups, conv.k // conv.groups
    fit = [n for n in range(1, conv.groups + 1) if conv.groups % n == 0 and n * c % WIDE == n * k % WIDE == 0]
    narrow = [n for n in fit if n * max(c, k) <= DEPTH]
    return (narrow[-1:] or fit[:1] or [conv.groups])[0]


@functools.lru_cache(maxsize=1024)
def fitted(conv: Convolution, of: str) -> Fitted:
    """Return how a pass is computed; "backward_data" not by `merged`."""
    together = joined(conv)
    groups = conv.groups // together
    c, row = conv.c // groups, up(conv.c // groups)
    taps, one = conv.r * conv.s, replace(conv, k=1, groups=1)
    found = Fitted(replace(conv, c=row * groups, groups=groups), View(), None, taps, 1, row, row, together)
    if row != c:
        read = replace(one, r=1, s=1, padding=(0, 0), stride=(1, 1), dilation=(1, 1))
        found = replace(found, copied=(read, conv.w, row, row))
    if of == "backward_data" or groups > 1:
        return found
    windows = _windows_as_pixels(conv, together)
    steps = math.ceil(c / DEPTH) * taps  # of a tile, and those with windows as pixels
    if row != c and conv.dilation[1] == 1 and LEAST_GAIN * math.ceil(windows.row / DEPTH) <= steps:
        return windows
    if not wgmma_im2col.unwalkable([wgmma_im2col.forward_phase(conv)], (conv.h, conv.w)):
        return found
    row = up(taps * conv.c)
    unrolled = Convolution(conv.n, row, conv.p, conv.q, conv.k, 1, 1)
    return Fitted(unrolled, View(), (one, conv.q, row, conv.c), 1, taps, conv.c, conv.c, together)


def _windows_as_pixels(conv: Convolution, together: int) -> Fitted:
    """Return how x is read whose pixels are windows: S pixels of the copy, each with the channels of R rows."""
    pitch = up(conv.r * conv.c, WIDE // math.gcd(WIDE, conv.stride[1]))
    width = up(conv.w + 2 * conv.padding[1], WIDE // math.gcd(WIDE, pitch))
    line = width * pitch * HALF
    whole = Convolution(conv.n, up(conv.s * pitch), conv.p, conv.q, conv.k, 1, 1)
    view = View(conv.s * pitch, (conv.p * line, line, conv.stride[1] * pitch * HALF))
    down, above, apart = conv.stride[0], conv.padding[0], conv.dilation[0]
    read = replace(conv, k=1, s=1, padding=(above, conv.padding[1]), stride=(down, 1), dilation=(apart, 1), groups=1)
    return Fitted(whole, view, (read, width, pitch, conv.c), 1, conv.s, pitch, conv.c, together, conv.r)


@dataclass(frozen=True)
class Merged:
    """The gradient of x as one forward pass over dy: `conv`, with a filter for each channel of each phase."""

    conv: Convolution
    phase: Phase

    @property
    def products(self) -> int:
        """Return products with an element of dy's channels, for all phases of a pixel."""
        return up(self.conv.k, 16 if self.conv.k <= DEPTH else DEPTH) * self.conv.r * self.conv.s


@functools.lru_cache(maxsize=1024)
def merged(conv: Convolution) -> Merged | None:
    """Return the one product of a gradient of x; None where its phases apart take fewer."""
    if joined(conv) != conv.groups:
        return None
    axes = []
    for size, taps, padding, stride, dilation in zip(
        (conv.h, conv.w), (conv.r, conv.s), conv.padding, conv.stride, conv.dilation, strict=True
    ):
        # Element stride · i + phase of dx meets tap r of y's element i + (phase + padding - r · dilation) / stride.
        first = math.ceil((padding - (taps - 1) * dilation) / stride)
        last = (stride - 1 + padding) // stride
        axes.append(Axis(math.ceil(size / stride), first, 1, max(1, last - first + 1), 1))
    phase, filters = Phase(*axes), conv.stride[0] * conv.stride[1] * conv.c
    rows, columns = (axis.taps for axis in axes)
    found = Merged(Convolution(conv.n, up(conv.k), conv.p, conv.q, filters, rows, columns, (rows, columns)), phase)
    apart = up(conv.c, DEPTH) * conv.r * conv.s
    if wgmma_im2col.unwalkable([phase], (conv.p, conv.q)):
        return None
    return found if found.products < apart or _apart_unwalkable(conv) else None


def _apart_unwalkable(conv: Convolution) -> str:
    return wgmma_im2col.unwalkable(gradient_phases(conv), (conv.p, conv.q))


def _blocks(count: int) -> int:
    return math.ceil(count / THREADS)


def _unroll(x: Any, x_to: Any, copied: Any, w: Any, w_to: Any, conv: Convolution, fit: Fitted) -> None:
    """Queue the copies before the product, of pixels and of filters; None for what is not copied."""
    read, width, row, pitch = copied or (conv, 1, WIDE, WIDE)
    lines = 0 if x_to is None else x_to.size // (width * row)
    blocks = lines + (0 if w_to is None else _blocks(w_to.size // WIDE))
    longest = max(row if lines else 0, 0 if w_to is None else fit.row)
    arguments = x, x_to, sizes(read), *map(np.int32, (width, row, pitch, lines)), w, w_to, sizes(conv), fit.rows
    if blocks:
        Queued(FILE, "conv_unroll", blocks, THREADS, arguments, PLACE * longest).launch()


def _take(found: Any, to: Any, conv: Convolution, channels: int, row: int, stride: tuple[int, int] = (1, 1)) -> None:
    """Queue the copy of the first channels, or of all phases, to an array of `conv`'s images of y or x."""
    _, height, width, _ = to.shape
    arguments = found, to, *map(np.int32, (conv.n, height, width, channels, *stride, row))
    Queued(FILE, "conv_take_pixels", _blocks(math.ceil(to.size / WIDE)), THREADS, arguments).launch()


def _padded_channels(conv: Convolution, channels: int) -> tuple[Convolution, int, int, int]:
    """Return what pads the channels of an array like y."""
    return Convolution(conv.n, channels, conv.p, conv.q, 1, 1, 1), conv.q, up(channels), up(channels)


@dataclass(frozen=True)
class PaddedStep(WgmmaStep):
    """What the three passes share."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Refuse what no copy makes walkable."""
        if refusal := super(WgmmaStep, self).refuses(conv, layout, dtype):
            return refusal
        reason = self._unwalkable(conv)
        if max(self._elements(conv)) > MOST_ELEMENTS:
            reason = f"would make a copy of more than {MOST_ELEMENTS:,} elements"
        fit = fitted(conv, self.walks)
        if max(fit.row, up(conv.k)) > MOST_ROW:
            reason = f"finds places for {MOST_ROW:,} channels at most"
        return f"{self.name} {reason}: take {INSTEAD}" if reason else ""

    def remark(self, conv: Convolution, of: str) -> str:
        """Return what joined groups cost where they are too wide for it."""
        wide = joined(conv) * conv.c // conv.groups
        if joined(conv) == 1 or wide <= 2 * DEPTH:
            return ""
        return f"{conv.groups} groups of {conv.c // conv.groups} channels are computed as if they were one"

    def _unwalkable(self, conv: Convolution) -> str:
        if self.walks == "backward_data":
            return "" if merged(conv) else _apart_unwalkable(conv)
        fit = fitted(conv, self.walks).conv
        return wgmma_im2col.unwalkable([wgmma_im2col.forward_phase(fit)], (fit.h, fit.w))

    def _elements(self, conv: Convolution) -> tuple[int, ...]:
        """Return elements of the copies, float16; 0 of those that are not made."""
        raise NotImplementedError

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the copies."""
        return sum(up(HALF * count, ROOM) for count in self._elements(conv))

    def _copies(self, conv: Convolution, workspace: Any) -> Iterable[Any]:
        """Yield the arrays of `_elements`, in the workspace."""
        workspace = self.workspace(conv, np.float16) if workspace is None else workspace
        start = 0
        for count in self._elements(conv):
            yield workspace[start : start + HALF * count].view(np.float16) if count else None
            start += up(HALF * count, ROOM)


@dataclass(frozen=True)
class PaddedForwardStep(PaddedStep):
    """y, with bias and ReLU in the same kernel."""

    def _elements(self, conv: Convolution) -> tuple[int, ...]:
        fit = fitted(conv, "forward")
        return (
            fit.x_elements,
            fit.filter_elements(conv.k),
            conv.n * conv.p * conv.q * up(conv.k) if conv.k % WIDE else 0,
        )

    def launch(
        self,
        x: Any,
        w: Any,
        y: Any,
        conv: Convolution,
        bias: Any = None,
        relu: bool = False,
        workspace: Any = None,
        tiles: Im2colTiles | None = None,
    ) -> None:
        """Queue the copies and the kernel, with the sizes that `tile_sizes` says unless others are given."""
        fit = fitted(conv, "forward")
        read, filters, wide = self._copies(conv, workspace)
        _unroll(x, read, fit.copied, w, filters, conv, fit)
        view = replace(fit.view, pitch=up(conv.k))
        tiles = tiles or tile_sizes.chosen(fit.conv, "forward")
        operands = (given if copy is None else copy for given, copy in ((x, read), (w, filters), (y, wide)))
        wgmma_im2col.forward(*operands, fit.conv, tiles, bias, relu, view=view, early=True)
        if wide is not None:
            _take(wide, y, conv, conv.k, up(conv.k))


@dataclass(frozen=True)
class PaddedBackwardDataStep(PaddedStep):
    """The gradient of x, by its phases or merged."""

    walks = "backward_data"

    def _elements(self, conv: Convolution) -> tuple[int, ...]:
        """Return those of dy, w and dx."""
        of_dy = conv.n * conv.p * conv.q * up(conv.k) if conv.k % WIDE else 0
        if one := merged(conv):
            pixels = conv.n * one.phase.height.count * one.phase.width.count
            return of_dy, math.prod(one.conv.w_shape()), pixels * up(one.conv.k)
        fit = fitted(conv, "backward_data")
        return (
            of_dy,
            fit.filter_elements(up(conv.k)),
            conv.n * conv.h * conv.w * fit.conv.c if fit.conv.c != conv.c else 0,
        )

    def launch(
        self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None, tiles: Im2colTiles | None = None
    ) -> None:
        """Queue the copies and the kernels, with the sizes that `tile_sizes` says unless others are given."""
        read, filters, wide = self._copies(conv, workspace)
        one, fit, padded = merged(conv), fitted(conv, "backward_data"), _padded_channels(conv, conv.k)
        _unroll(dy, read, padded, w, None if one else filters, conv, fit)
        dy = dy if read is None else read
        if one:
            self._merged(dy, w, filters, wide, conv, one, tiles)
            _take(wide, dx, conv, conv.c, up(one.conv.k), conv.stride)
            return
        of_groups = replace(fit.conv, k=up(conv.k))
        tiles = tiles or tile_sizes.chosen(of_groups, "backward_data")
        filters = w if filters is None else filters
        wgmma_im2col.gradient(dy, filters, dx if wide is None else wide, of_groups, tiles, early=True)
        if wide is not None:
            _take(wide, dx, conv, conv.c, fit.conv.c)

    def _merged(
        self, dy: Any, w: Any, filters: Any, wide: Any, conv: Convolution, one: Merged, tiles: Im2colTiles | None
    ) -> None:
        phase = one.phase
        numbers = phase.height.first, phase.width.first, one.conv.r, one.conv.s, one.conv.c
        arguments = w, filters, sizes(conv), *map(np.int32, numbers)
        Queued(FILE, "conv_turn_filters", _blocks(filters.size), THREADS, arguments).launch()
        view, tiles = View(phase=phase, pitch=up(one.conv.k)), tiles or tile_sizes.chosen(one.conv, "forward")
        wgmma_im2col.forward(dy, filters, wide, one.conv, tiles, view=view, early=True)


@dataclass(frozen=True)
class PaddedBackwardFilterStep(PaddedStep):
    """The gradient of w: the splits' sums, float32, then their sum, always in the same order."""

    def _elements(self, conv: Convolution) -> tuple[int, ...]:
        """Return those of x, dy and, twice as many, of the sums."""
        fit = fitted(conv, "backward_filter")
        whole = replace(fit.conv, k=up(conv.k))
        sums = backward_filter.tiling(whole).splits * backward_filter.stride_of(whole)
        return fit.x_elements, conv.n * conv.p * conv.q * whole.k if whole.k != conv.k else 0, 2 * sums

    def launch(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> None:
        """Queue the copies and the kernels."""
        fit = fitted(conv, "backward_filter")
        whole = replace(fit.conv, k=up(conv.k))
        read, wide, sums = self._copies(conv, workspace)
        _unroll(x, read, fit.copied, None, None, conv, fit)
        _unroll(dy, wide, _padded_channels(conv, conv.k), None, None, conv, fit)
        tile, splits = backward_filter.tiling(whole)
        partial = sums.view(np.float32)
        operands = x if read is None else read, dy if wide is None else wide
        backward_filter.multiply(*operands, partial, whole, tile, splits, fit.view)
        numbers = map(np.int32, (whole.k // whole.groups, backward_filter.stride_of(whole), splits))
        blocks, together = math.ceil(dw.size / ADDED), min(ADDERS, splits)
        Queued(
            FILE, "conv_add_filters", blocks, (ADDED, together), (partial, dw, sizes(conv), fit.rows, *numbers)
        ).launch()


FORWARD = (PaddedForwardStep(None, NAME, FORMATS, 16),)
BACKWARD_DATA = (PaddedBackwardDataStep(None, NAME, FORMATS, 16),)
BACKWARD_FILTER = (PaddedBackwardFilterStep(None, NAME, FORMATS, 16),)
