"""Convolutions of few channels, as first layers are, and gradients of x from few: how patch.cu is launched. Compute
capability 8.0.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels.convolution.beside.depthwise import least
from kernels.convolution.common.queued import Queued
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper.padded import up
from warpcourse.bench import hopper

FILE, NAME = "beside/patch.cu", "mma_patch"
THREADS, PIXELS, WARPS, EIGHT, DEPTH = 128, 128, 4, 8, 16  # as in the kernel
MOST_FILTERS = 64  # of a block
MOST_CHANNELS, MOST_DEPTH = 16, 512  # of a filter's row by row
MOST_ELEMENTS = 2**31 - 2**12  # of x
MOST_SHARED = 96 * 1024  # of a block
MOST_PRODUCTS = 12_000  # of filters and depth, padded: beyond that step 5 and its copies are faster
_FIELDS = "shift", "tiles_down", "tiles_across", "tiles", "rows", "pitch", "chunks", "line", "steps"
PATCH = np.dtype([(name, np.int32) for name in _FIELDS])


@dataclass(frozen=True)
class Patch:
    """A tile's parameters, `Patch` of the kernel; `eights`: of filters of a block."""

    shift: int
    tiles_down: int
    tiles_across: int
    rows: int
    pitch: int
    line: int
    steps: int
    eights: int
    pairs: bool
    images: int

    @property
    def tiles(self) -> int:
        """Return tiles of all images."""
        return self.images * self.tiles_down * self.tiles_across

    @property
    def shared_bytes(self) -> int:
        """Return shared memory of a block: filters, pairs, results, the patch."""
        filters, deep = self.eights * EIGHT, self.steps * DEPTH
        halves = filters * (deep + EIGHT) + WARPS * DEPTH * (filters + EIGHT) + self.rows * self.pitch
        return 2 * halves + 16 * deep // 2

    @property
    def numbers(self) -> np.ndarray:
        """Return `Patch` of the kernel."""
        chunks = math.ceil((self.pitch + EIGHT - 1) / EIGHT)
        found = self.shift, self.tiles_down, self.tiles_across, self.tiles, self.rows, self.pitch
        return np.array([(*found, chunks, self.line, self.steps)], PATCH)


@functools.lru_cache(maxsize=1024)
def patch(conv: Convolution) -> Patch:
    """Return the tiles of a convolution: of those 4 to 128 pixels wide, the ones that bring the least of x."""
    in_row = conv.s * conv.c
    together = conv.dilation[1] == 1 or conv.c % 2 == 0
    pairs = together and conv.stride[1] * conv.c % 2 == 0
    line = in_row + in_row % 2 if pairs else in_row
    blocks = math.ceil(conv.k / MOST_FILTERS)
    eights = up(math.ceil(conv.k / EIGHT / blocks), 2)
    found = []
    for shift in range(2, 8):
        wide, high = 1 << shift, PIXELS >> shift
        rows = (high - 1) * conv.stride[0] + (conv.r - 1) * conv.dilation[0] + 1
        width = ((wide - 1) * conv.stride[1] + (conv.s - 1) * conv.dilation[1] + 1) * conv.c
        down, across = math.ceil(conv.p / high), math.ceil(conv.q / wide)
        steps = math.ceil(conv.r * line / DEPTH)
        pitch = up(width + line - in_row, EIGHT)  # the last window's zero is read, too
        found.append(Patch(shift, down, across, rows, pitch, line, steps, eights, pairs, conv.n))
    return min(found, key=lambda one: one.tiles * (PIXELS * conv.c + one.rows * one.pitch))


@dataclass(frozen=True)
class PatchStep(Step):
    """patch.cu."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Refuse many channels, groups, and windows that are too large."""
        if refusal := super().refuses(conv, layout, dtype):
            return refusal
        reason = ""
        if conv.groups > 1 or conv.c > MOST_CHANNELS:
            reason = f"takes up to {MOST_CHANNELS} channels in one group"
        elif conv.r * patch(conv).line > MOST_DEPTH or patch(conv).shared_bytes > MOST_SHARED:
            reason = f"has no room for windows of {conv.r} × {conv.s}"
        elif math.prod(conv.x_shape()) > MOST_ELEMENTS:
            reason = f"takes {MOST_ELEMENTS:,} elements of x at most"
        return f'{self.name} {reason}: take step="auto"' if reason else ""

    def preferred(self, conv: Convolution, dtype: Any) -> bool:
        """Return whether this is a GPU, as others are simulated sooner, and step 5 would take longer."""
        one = patch(conv)
        products = one.steps * DEPTH * up(conv.k, one.eights * EIGHT)
        flat = conv.c % EIGHT == 0 and conv.r * conv.s == 1
        apart = conv.stride[0] >= conv.r and conv.stride[1] >= conv.s and conv.r * conv.s > 1
        return hopper.available() and products <= MOST_PRODUCTS and not flat and not apart

    def queued(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> list[Queued]:
        """Return the one launch, whose blocks stay."""
        one = patch(conv)
        wide = next(vec for vec in (8, 2, 1) if conv.k % vec == 0)
        entry = f"conv_mma_patch<{one.eights}, {str(one.pairs).lower()}, {wide}>"
        blocks = math.ceil(conv.k / (one.eights * EIGHT))
        most = 6 if one.eights <= 4 else 5  # of a multiprocessor, as the kernel's launch bounds
        resident = min(most, 227 * 1024 // (one.shared_bytes + 1024)) * hopper.multiprocessors()
        grid = min(one.tiles, math.ceil(resident / blocks)), blocks
        return [
            Queued(FILE, entry, grid, THREADS, (x, w, bias, y, sizes(conv), one.numbers, least(relu)), one.shared_bytes)
        ]


@dataclass(frozen=True)
class PatchBackwardDataStep(PatchStep):
    """The gradient of x with stride 1: a convolution of dy, with its filters turned round and dx's channels first."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Refuse strides, and what `_of_dy` refuses as a convolution."""
        if max(conv.stride) > 1 or not _of_dy(conv):
            return f'{self.name} takes stride 1 and no padding beyond the filter: take step="auto"'
        return super().refuses(_of_dy(conv), layout, dtype)

    def preferred(self, conv: Convolution, dtype: Any) -> bool:
        """Return whether the convolution of dy would be computed so."""
        return super().preferred(_of_dy(conv), dtype)

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the filters turned round."""
        return 2 * math.prod(conv.w_shape())

    def queued(self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None) -> list[Queued]:
        """Return the launches that turn the filters and that multiply."""
        workspace = self.workspace(conv, np.float16) if workspace is None else workspace
        turned = workspace[: 2 * w.size].view(np.float16)
        blocks, arguments = math.ceil(w.size / THREADS), (w, turned, sizes(conv))
        return [Queued(FILE, "conv_turned", blocks, THREADS, arguments), *super().queued(dy, turned, dx, _of_dy(conv))]


def _of_dy(conv: Convolution) -> Convolution | None:
    """Return the gradient of x as a forward pass over dy; None where it is none."""
    extents = zip((conv.r, conv.s), conv.dilation, conv.padding, strict=True)
    padding = tuple((taps - 1) * dilation - padding for taps, dilation, padding in extents)
    if min(padding) < 0 or conv.groups > 1 or max(conv.stride) > 1:
        return None
    return replace(conv, c=conv.k, k=conv.c, h=conv.p, w=conv.q, padding=padding)


FORWARD = (PatchStep(None, NAME, (("NHWC", "float16"),), 16),)
BACKWARD_DATA = (PatchBackwardDataStep(None, NAME, (("NHWC", "float16"),), 16),)
