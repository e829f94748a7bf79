"""Steps 2 and 3, the convolution as a float32 matrix product: over a matrix made by im2col, and without that matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.sources import SOURCES, sizes
from kernels.convolution.common.step import ForwardStep
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps.direct import FP32
from warpcourse.bench.lab_kernels import launch

TILE = 64, 128  # filters and pixels that a block computes, BM and BN in tile_product.cuh
THREADS = 128
MAX_GRID_Y = 65535


def grid(conv: Convolution) -> int:
    """Return blocks of both products."""
    pixels, filters, _ = conv.gemm
    return math.ceil(filters / TILE[0]) * math.ceil(pixels / TILE[1]) * conv.groups


@dataclass(frozen=True)
class Im2colStep(ForwardStep):
    """2_im2col.cu."""

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the matrix of depth × pixels of all groups."""
        return 4 * conv.c * conv.r * conv.s * conv.gemm[0]

    def im2col_grid(self, conv: Convolution) -> tuple[int, int]:
        """Return blocks of the kernel that writes the matrix."""
        return math.ceil(conv.gemm[0] / THREADS), min(conv.c, MAX_GRID_Y)

    def functions(self) -> tuple[Any, Any]:
        """Return the compiled kernels of the active backend: im2col and the product."""
        im2col, product = (SOURCES.function("steps/2_im2col.cu", f"conv_im2col{name}") for name in ("", "_product"))
        return im2col, product

    def launch(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> None:
        """Queue both kernels."""
        columns = (self.workspace(conv, x.dtype) if workspace is None else workspace).view(np.float32)
        im2col, product = self.functions()
        launch(im2col, self.im2col_grid(conv), THREADS, (x, columns, sizes(conv)))
        launch(product, grid(conv), THREADS, (columns, w, bias, y, sizes(conv), np.int32(relu)))


@dataclass(frozen=True)
class ImplicitGemmStep(ForwardStep):
    """3_implicit_gemm.cu."""

    def function(self) -> Any:
        """Return the compiled kernel of the active backend."""
        return SOURCES.function("steps/3_implicit_gemm.cu", "conv_implicit_gemm")

    def launch(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> None:
        """Queue the kernel."""
        launch(self.function(), grid(conv), THREADS, (x, w, bias, y, sizes(conv), np.int32(relu)))


FORWARD = (Im2colStep(2, "im2col", FP32), ImplicitGemmStep(3, "implicit_gemm", FP32))
