"""Winograd's F(2×2, 3×3) in float32: its operations, its workspace and its launch."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.queued import Queued
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps.direct import FP32
from kernels.convolution.steps.gemm_steps import MAX_GRID_Y, THREADS, TILE

FILE = "beside/winograd.cu"
PLACES = 16  # of a tile of 4 × 4
MAX_GRID_Z = 65535
LEAST_CHANNELS = 64  # the fewest that were measured to gain, in ResNet-50's conv2_x on an H100


def tiles(conv: Convolution) -> int:
    """Return tiles of 2 × 2 elements of y, of all images."""
    return conv.n * math.ceil(conv.p / 2) * math.ceil(conv.q / 2)


def elements(conv: Convolution) -> tuple[int, int, int]:
    """Return bytes of the transformed filters, the transformed inputs and their products."""
    return (PLACES * conv.k * (conv.c // conv.groups), PLACES * conv.c * tiles(conv), PLACES * conv.k * tiles(conv))


def grids(conv: Convolution) -> dict[str, tuple[int, ...]]:
    """Return blocks of each kernel, in the order of their launches."""
    threads_for = math.ceil(tiles(conv) / THREADS)
    of_products = math.ceil(conv.k // conv.groups / TILE[0]) * math.ceil(tiles(conv) / TILE[1])
    return {
        "filters": (math.ceil(conv.k * (conv.c // conv.groups) / THREADS),),
        "inputs": (threads_for, min(conv.c, MAX_GRID_Y)),
        "products": (of_products, PLACES, conv.groups),
        "outputs": (threads_for, min(conv.k, MAX_GRID_Y)),
    }


@dataclass(frozen=True)
class WinogradStep(Step):
    """winograd.cu, four kernels."""

    def refuses(self, conv: Convolution, layout: str, dtype: Any) -> str:
        """Refuse other filters than 3 × 3, strides and dilations."""
        if refusal := super().refuses(conv, layout, dtype):
            return refusal
        if (conv.r, conv.s, conv.stride, conv.dilation) != (3, 3, (1, 1), (1, 1)):
            return (
                f"{self.name} computes filters of 3 × 3 with stride 1 and dilation 1, and not {conv}: "
                "take implicit_gemm"
            )
        if conv.groups > MAX_GRID_Z:
            return f"{self.name} takes {MAX_GRID_Z:,} groups at most, and not {conv.groups:,}: take implicit_gemm"
        return ""

    def preferred(self, conv: Convolution, dtype: Any) -> bool:
        """Return whether channels and filters are many: for few, the transforms' memory costs more than the products
        save."""
        return min(conv.c, conv.k) // conv.groups >= LEAST_CHANNELS

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the transformed filters and inputs and of their products."""
        return 4 * sum(elements(conv))

    def queued(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> list[Queued]:
        """Return the launches of the four kernels."""
        memory = (self.workspace(conv, x.dtype) if workspace is None else workspace).view(np.float32)
        of_u, of_v, of_m = elements(conv)
        u, v, m = memory[:of_u], memory[of_u : of_u + of_v], memory[of_u + of_v : of_u + of_v + of_m]
        size = sizes(conv)
        arguments = {
            "filters": (w, u, size),
            "inputs": (x, v, size),
            "products": (u, v, m, size),
            "outputs": (m, bias, y, size, np.int32(relu)),
        }
        return [
            Queued(FILE, f"conv_winograd_{name}", grid, THREADS, arguments[name]) for name, grid in grids(conv).items()
        ]


FORWARD = (WinogradStep(None, "winograd", FP32),)
