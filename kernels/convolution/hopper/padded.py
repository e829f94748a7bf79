"""Step 5's kernels for convolutions that TMA cannot walk as they are, on copies that padded.cu makes (`fitted`):

- channels that are no multiple of 8 are padded with zeros. Few become more: a pixel of the copy has those of all rows
  of a window, padding included, and a window's pixels are read as one, which overlaps with the next;
- groups are parts of a launch; narrow ones are joined to 64 channels, and their filters are zero outside of their own.
  A NaN or an infinity in x is NaN in the results of all groups that are joined with its own;
- images with a stride above 8, with much padding, or whose windows leave pixels out are unrolled, as im2col does;
- the gradient of a few channels of x is one product for all phases of the stride (`merged`), whose pixels are then put
  in their places.

Compute capability 9.0.
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels.convolution.common.sources import FOLDER, INCLUDE, sizes
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import backward_filter, tile_sizes, wgmma_im2col
from kernels.convolution.hopper.forward import FORMATS, INSTEAD, WgmmaStep
from kernels.convolution.hopper.tile_sizes import DEPTH, HALF, Im2colTiles
from kernels.convolution.hopper.wgmma_im2col import WIDE, Axis, Phase, View, gradient_phases
from warpcourse.bench import hopper

FILE, NAME = FOLDER / "hopper/padded.cu", "wgmma_padded"
THREADS = 256  # of a block
ADDERS, TOGETHER = 8, 4  # of conv_add_filters: threads for an element, and filters of a thread
PLACE, MOST_ROW = 8, 16384  # bytes, and elements, of what a block of conv_unroll finds first
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

    @property
    def filters(self) -> int:
        """Return filters, of each group a multiple of 8."""
        return up(self.conv.k // self.conv.groups) * self.conv.groups

    def filter_elements(self) -> int:
        """Return elements of the copies of filters; 0 where these stay."""
        stay = self.copied is None and self.joined == 1
        return 0 if stay else up(self.conv.k) * self.taps * self.row

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
    """Return how many groups to join: with the fewest tiles of 64 channels × 64 filters in all; of equals such that
    both are multiples of 8, then the fewest."""
    c, k = conv.c // conv.groups, conv.k // conv.groups

    def cost(n: int) -> tuple[int, bool, int]:
        tiles = conv.groups // n * math.ceil(n * c / DEPTH) * math.ceil(n * k / DEPTH)
        return tiles, n * c % WIDE > 0 or n * k % WIDE > 0, n

    return min((n for n in range(1, conv.groups + 1) if conv.groups % n == 0), key=cost)


@functools.lru_cache(maxsize=1024)
def fitted(conv: Convolution, of: str) -> Fitted:
    """Return how a pass is computed; "backward_data" not by `merged`."""
    together = joined(conv)
    groups = conv.groups // together
    c, row = conv.c // groups, up(conv.c // groups)
    taps, one = conv.r * conv.s, replace(conv, k=1, groups=1)
    found = Fitted(replace(conv, c=row * groups, groups=groups), View(), None, taps, 1, row, row, together)
    if row != c:
        found = replace(found, copied=_padded_channels((conv.n, conv.h, conv.w, conv.c), groups))
    if of == "backward_data" or groups > 1:
        return found
    windows = _windows_as_pixels(conv, together)
    steps = math.ceil(c / DEPTH) * taps  # of a tile, and those with windows as pixels
    if row != c and conv.dilation[1] == 1 and LEAST_GAIN * math.ceil(windows.row / DEPTH) <= steps:
        return windows
    unrolled = up(taps * conv.c)
    apart = row != c and conv.stride[0] >= conv.r and conv.stride[1] >= conv.s and unrolled <= MOST_ROW
    if not apart and not wgmma_im2col.unwalkable([wgmma_im2col.forward_phase(conv)], (conv.h, conv.w)):
        return found
    whole = Convolution(conv.n, unrolled, conv.p, conv.q, conv.k, 1, 1)
    return Fitted(whole, View(), (one, conv.q, unrolled, conv.c), 1, taps, conv.c, conv.c, together)


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
        if stride == 1:
            axes.append(Axis(size, padding - (taps - 1) * dilation, 1, taps, dilation))
            continue
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


def _queue(
    entry: str, blocks: int, block: tuple[int, ...], arguments: tuple, shared: int = 0, early: bool = True
) -> None:
    """Queue a kernel of padded.cu. `early`: as of a launch, after another one of the same pass."""
    given = tuple(np.uint64(0) if argument is None else argument for argument in arguments)
    hopper.kernel(FILE, entry, INCLUDE)((blocks,), block, given, shared, early=early)


def _unroll(
    x: Any, x_to: Any, copied: Any, w: Any, w_to: Any, conv: Convolution, fit: Fitted, early: bool = False
) -> bool:
    """Queue the copies before the product, of pixels and of filters; None for what is not copied. Return whether there
    are any. `early`: after another copy."""
    read, width, row, pitch = copied or (conv, 1, WIDE, WIDE)
    whole = 0 if x_to is None else x_to.size
    lines = whole // (width * row) if pitch else _blocks(whole // WIDE)
    blocks = lines + (0 if w_to is None else _blocks(w_to.size // WIDE))
    longest = max(row if lines and pitch else 0, 0 if w_to is None else fit.row)
    arguments = x, x_to, sizes(read), *map(np.int32, (width, row, pitch, lines)), w, w_to, sizes(conv), fit.rows
    if blocks:
        _queue("conv_unroll", blocks, (THREADS,), arguments, PLACE * longest, early)
    return early or blocks > 0


def _take(found: Any, to: Any, channels: int, row: int, stride: tuple[int, int] = (1, 1), groups: int = 1) -> None:
    """Queue the copy of the first channels of each group, or of all phases, to an array of images."""
    n, height, width, _ = to.shape
    arguments = found, to, *map(np.int32, (n, height, width * groups, channels, *stride, row))
    _queue("conv_take_pixels", _blocks(math.ceil(to.size / WIDE)), (THREADS,), arguments)


def _padded_channels(shape: tuple[int, ...], groups: int) -> tuple[Convolution, int, int, int]:
    """Return what pads the channels of each group of an array, NHWC, as if groups were pixels; pitch 0 says so."""
    n, height, width, channels = shape
    of_group = channels // groups
    return Convolution(n, of_group, height, width * groups, 1, 1, 1), width * groups, up(of_group), 0


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
        return fit.x_elements, fit.filter_elements()

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
        read, filters = self._copies(conv, workspace)
        _unroll(x, read, fit.copied, w, filters, conv, fit)
        tiles = tiles or tile_sizes.chosen(fit.conv, "forward")
        operands = (given if copy is None else copy for given, copy in ((x, read), (w, filters)))
        wgmma_im2col.forward(*operands, y, fit.conv, tiles, bias, relu, view=fit.view, early=True)


@dataclass(frozen=True)
class PaddedBackwardDataStep(PaddedStep):
    """The gradient of x, by its phases or merged."""

    walks = "backward_data"

    def _elements(self, conv: Convolution) -> tuple[int, ...]:
        """Return those of dy, w and dx."""
        fit, one = fitted(conv, "backward_data"), merged(conv)
        filters = fit.filters if one is None else up(conv.k)
        of_dy = conv.n * conv.p * conv.q * filters if filters != conv.k else 0
        if one:
            pixels = conv.n * one.phase.height.count * one.phase.width.count
            return of_dy, math.prod(one.conv.w_shape()), pixels * up(one.conv.k)
        wide = conv.n * conv.h * conv.w * fit.conv.c if fit.conv.c != conv.c else 0
        return of_dy, fit.filter_elements(), wide

    def launch(
        self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None, tiles: Im2colTiles | None = None
    ) -> None:
        """Queue the copies and the kernels, with the sizes that `tile_sizes` says unless others are given."""
        read, filters, wide = self._copies(conv, workspace)
        one, fit = merged(conv), fitted(conv, "backward_data")
        groups = 1 if one else fit.conv.groups
        padded = _padded_channels((conv.n, conv.p, conv.q, conv.k), groups)
        copies = _unroll(dy, read, padded, w, None if one else filters, conv, fit)
        dy = dy if read is None else read
        if one:
            self._merged(dy, w, filters, wide, conv, one, tiles, copies)
            _take(wide, dx, conv.c, up(one.conv.k), conv.stride)
            return
        of_groups = replace(fit.conv, k=fit.filters)
        tiles = tiles or tile_sizes.chosen(of_groups, "backward_data")
        filters = w if filters is None else filters
        wgmma_im2col.gradient(dy, filters, dx if wide is None else wide, of_groups, tiles, early=True, filters=conv.k)
        if wide is not None:
            _take(wide, dx, conv.c // groups, fit.row, groups=groups)

    def _merged(
        self,
        dy: Any,
        w: Any,
        filters: Any,
        wide: Any,
        conv: Convolution,
        one: Merged,
        tiles: Im2colTiles | None,
        copies: bool,
    ) -> None:
        phase = one.phase
        numbers = phase.height.first, phase.width.first, one.conv.r, one.conv.s, one.conv.c
        arguments = w, filters, sizes(conv), *map(np.int32, numbers)
        _queue("conv_turn_filters", _blocks(filters.size), (THREADS,), arguments, early=copies)
        view, tiles = View(phase=phase, pitch=up(one.conv.k)), tiles or tile_sizes.chosen(one.conv, "forward")
        wgmma_im2col.forward(dy, filters, wide, one.conv, tiles, view=view, early=True)


@dataclass(frozen=True)
class PaddedBackwardFilterStep(PaddedStep):
    """The gradient of w: the splits' sums, float32, then their sum, always in the same order."""

    def _elements(self, conv: Convolution) -> tuple[int, ...]:
        """Return those of x, dy and, twice as many, of the sums."""
        fit = fitted(conv, "backward_filter")
        whole = replace(fit.conv, k=fit.filters)
        sums = backward_filter.tiling(whole).splits * backward_filter.stride_of(whole)
        return fit.x_elements, conv.n * conv.p * conv.q * whole.k if whole.k != conv.k else 0, 2 * sums

    def launch(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> None:
        """Queue the copies and the kernels."""
        fit = fitted(conv, "backward_filter")
        whole = replace(fit.conv, k=fit.filters)
        read, wide, sums = self._copies(conv, workspace)
        copies = _unroll(x, read, fit.copied, None, None, conv, fit)
        _unroll(dy, wide, _padded_channels(dy.shape, fit.conv.groups), None, None, conv, fit, copies)
        tile, splits = backward_filter.tiling(whole)
        partial = sums.view(np.float32)
        operands = x if read is None else read, dy if wide is None else wide
        backward_filter.multiply(*operands, partial, whole, tile, splits, fit.view, early=True)
        numbers = map(np.int32, (conv.k // whole.groups, backward_filter.stride_of(whole), splits))
        adders = min(ADDERS, splits)
        wide = THREADS // ADDERS * (ADDERS // adders)
        blocks = math.ceil(math.prod(dw.shape[1:]) / wide) * math.ceil(conv.k / TOGETHER)
        _queue("conv_add_filters", blocks, (wide, adders), (partial, dw, sizes(conv), fit.rows, *numbers))


FORWARD = (PaddedForwardStep(None, NAME, FORMATS, 16),)
BACKWARD_DATA = (PaddedBackwardDataStep(None, NAME, FORMATS, 16),)
BACKWARD_FILTER = (PaddedBackwardFilterStep(None, NAME, FORMATS, 16),)
