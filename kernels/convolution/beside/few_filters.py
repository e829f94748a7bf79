"""The gradient of w of few filters: how few_filters.cu is launched."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.beside import depthwise
from kernels.convolution.common.queued import Queued, address, instance
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench import hopper

FILE, NAME = "beside/few_filters.cu", "few_filters"
WARPS, RUN = 4, 32  # of a block; pixels of y that a warp takes at a time, as in the kernel
AT_WORK = 6  # blocks, on a multiprocessor, likewise
MOST_FILTERS, LEAST_CHANNELS = 4, 16  # with fewer channels most of a warp's threads would have none
MOST_SUMS, MOST_LOADED = 32, 16  # of a thread; elements of x that it needs for a pixel, unless it has one channel


@dataclass(frozen=True)
class FewFiltersStep(Step):
    """few_filters.cu, then the sum of what its blocks leave, always in the same order."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Refuse groups, many filters, wide ones, and few channels."""
        if refusal := super().refuses(conv, layout, dtype):
            return refusal
        small = conv.k <= MOST_FILTERS and conv.k * conv.s <= MOST_SUMS
        if conv.groups == 1 and small and conv.c >= LEAST_CHANNELS:
            return ""
        sizes = f"{MOST_FILTERS} filters at most, with {MOST_SUMS} taps in a row, of {LEAST_CHANNELS} channels or more"
        return f'{self.name} takes {sizes} in one group: take step="auto"'

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the partial sums, float32, where addresses allow the widest loads: these leave the most."""
        return 4 * math.prod(conv.w_shape()) * _grid(conv, _vector(conv, 0))[1]

    def queued(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> list[Queued]:
        """Return the launches of the sums of blocks and of their sum."""
        vector = _vector(conv, address(x))
        grid = _grid(conv, vector)
        partial = (self.workspace(conv, np.float16) if workspace is None else workspace).view(np.float32)
        add, count = instance("depthwise_add_partial", np.float16), dw.size
        stride = conv.stride[1] if conv.dilation[1] == 1 and conv.stride[1] <= 2 else 0
        entry = f"few_filters<{conv.k}, {conv.s}, {vector}, {stride}>"
        return [
            Queued(FILE, entry, grid, 32 * WARPS, (x, dy, partial, sizes(conv))),
            Queued(
                depthwise.FILE,
                add,
                math.ceil(count / 32),
                (32, 32),
                (partial, dw, *map(np.int32, (count, 1, grid[1]))),
            ),
        ]


def _vector(conv: Convolution, at: int) -> int:
    """Return channels of a thread: as many as a load brings, the sums allow, and the address."""
    fits = (vec for vec in (8, 4, 2) if conv.c % vec == 0 and at % (2 * vec) == 0)
    return next((vec for vec in fits if conv.k * conv.s * vec <= MOST_SUMS and conv.s * vec <= MOST_LOADED), 1)


def _grid(conv: Convolution, vector: int) -> tuple[int, int]:
    """Return rows of the filter × chunks of channels, and blocks that share the pixels."""
    apart, runs = conv.r * math.ceil(conv.c / 32 / vector), conv.n * conv.p * math.ceil(conv.q / RUN)
    return apart, min(math.ceil(runs / WARPS), math.ceil(AT_WORK * hopper.multiprocessors() / apart))


BACKWARD_FILTER = (FewFiltersStep(None, NAME, (("NHWC", "float16"),)),)
