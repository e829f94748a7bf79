"""The experiments of `access.cu`, `banks.cu` and `stencil.cu`: each function checks its arrays and launches."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.memory_access.sources import BLOCK, FLOAT4_BYTES, NUMBA, RADII, SOURCES, dimensions, in_flight
from warpcourse.bench.device_arguments import check_apart, check_array
from warpcourse.bench.lab_kernels import Kernel, by_name, choose

HEAT_BLOCK = (32, 8)
MAX_STRIDE = 33  # of read_banks, by the words that it has


@dataclass(frozen=True)
class Layout(Kernel):
    """A kernel on n points of four floats. `soa`: the points have shape (4, n), else (n, 4).

    `fields`: how many of the four are used.
    """

    soa: bool = False
    fields: int = 4

    def arguments(self, points: Any, out: Any) -> tuple:
        return (points, out) if self.language == "Numba" else (points, out, np.uint64(out.size))

    def queue(self, points: Any, out: Any) -> None:
        """Launch without any check."""
        self.launch((math.ceil(out.size / BLOCK),), (BLOCK,), self.arguments(points, out))


LAYOUTS = by_name(
    Layout("numba_aos_field", SOURCES, NUMBA, "aos_field", fields=1),
    Layout("numba_soa_field", SOURCES, NUMBA, "soa_field", soa=True, fields=1),
    Layout("numba_aos_norm", SOURCES, NUMBA, "aos_norm"),
    Layout("numba_soa_norm", SOURCES, NUMBA, "soa_norm", soa=True),
    Layout("cuda_aos_field", SOURCES, "access.cu", "aos_field", fields=1),
    Layout("cuda_soa_field", SOURCES, "access.cu", "soa_field", soa=True, fields=1),
    Layout("cuda_aos_norm", SOURCES, "access.cu", "aos_norm"),
    Layout("cuda_aos_norm_float4", SOURCES, "access.cu", "aos_norm_float4", FLOAT4_BYTES),
    Layout("cuda_soa_norm", SOURCES, "access.cu", "soa_norm", soa=True),
)
STRIDED = by_name(Kernel("numba", SOURCES, NUMBA, "copy_strided"), Kernel("cuda", SOURCES, "access.cu", "copy_strided"))


def copy_strided(a: Any, out: Any, stride: int = 1, offset: int = 0, kernel: str = "cuda") -> Any:
    """Compute out[i] = a[i * stride + offset]; return `out` before the kernel has finished.

    `a`, `out`: device arrays of one dimension, float32; `a` holds the last element that is read. `stride` and
    `offset`: at least 0. `kernel`: a name in STRIDED. Raise TypeError for arrays in host memory, ValueError for
    every other argument that does not fit.
    """
    chosen = choose(STRIDED, kernel)
    check_array("a", a)
    check_array("out", out)
    if stride < 0 or offset < 0:
        raise ValueError(f"stride {stride} and offset {offset} must be at least 0")
    if out.size == 0:
        return out
    needed = (out.size - 1) * stride + offset + 1
    if needed > a.size:
        raise ValueError(f"a has {a.size} elements; stride {stride}, offset {offset} and {out.size} need {needed}")
    check_apart("a", a, out)
    grid, block = (math.ceil(out.size / BLOCK),), (BLOCK,)
    if chosen.language == "Numba":
        chosen.launch(grid, block, (a, out, np.int64(stride), np.int64(offset)))
    else:
        chosen.launch(grid, block, (a, out, np.uint64(out.size), np.int32(stride), np.int32(offset)))
    return out


def copy_in_flight(a: Any, out: Any, width: int, items: int, blocks: int, block: int = BLOCK) -> Any:
    """Copy `a` to `out` by `blocks` blocks of `block` threads, each with `items` loads of `width` bytes under way.

    Arrays: float32, of one size, a multiple of `width` / 4. Raise ValueError for a pair that is not compiled.
    """
    entry = in_flight(width, items)
    check_array("a", a, alignment=width)
    check_array("out", out, tuple(a.shape), alignment=width)
    if a.size * 4 % width:
        raise ValueError(f"a has {a.size} elements; loads of {width} bytes need a multiple of {width // 4}")
    if a.size:
        check_apart("a", a, out)
        SOURCES.function("access.cu", entry)((blocks,), (block,), (a, out, np.uint64(a.size * 4 // width)))
    return out


def mean(a: Any, out: Any, radius: int, kind: str = "l1") -> Any:
    """Compute out[i] = mean of a[i .. i + 2 * radius], through L1 or shared memory (`kind` "l1", "shared").

    Arrays: float32, one dimension; `a` has 2 * radius elements more than `out`. `radius`: one of RADII.
    """
    _check_kind(kind)
    if radius not in RADII:
        raise ValueError(f"radius is {radius}; compiled are {', '.join(map(str, RADII))}")
    check_array("out", out)
    check_array("a", a, (out.size + 2 * radius,))
    if out.size:
        check_apart("a", a, out)
        launch_mean(a, out, radius, kind)
    return out


def launch_mean(a: Any, out: Any, radius: int, kind: str) -> None:
    """Queue `mean` without checks."""
    function = SOURCES.function("stencil.cu", f"mean_{kind}<{radius}>")
    function((math.ceil(out.size / BLOCK),), (BLOCK,), (a, out, np.uint64(out.size)))


def heat(a: Any, out: Any, kind: str = "l1") -> Any:
    """Compute out[y, x] = mean of the four neighbours of a[y + 1, x + 1], through "l1" or "shared".

    `out`: float32, shape (rows, columns); `a`: (rows + 2, columns + 2).
    """
    _check_kind(kind)
    rows, columns = dimensions(out, "out", 2)
    check_array("out", out)
    check_array("a", a, (rows + 2, columns + 2))
    if rows and columns:
        check_apart("a", a, out)
        launch_heat(a, out, kind)
    return out


def launch_heat(a: Any, out: Any, kind: str) -> None:
    """Queue `heat` without checks."""
    rows, columns = out.shape
    grid = (math.ceil(columns / HEAT_BLOCK[0]), math.ceil(rows / HEAT_BLOCK[1]))
    SOURCES.function("stencil.cu", f"heat_{kind}")(grid, HEAT_BLOCK, (a, out, np.int32(rows), np.int32(columns)))


def _check_kind(kind: str) -> None:
    if kind not in ("l1", "shared"):
        raise ValueError(f'kind is {kind!r}; it can be "l1" or "shared"')
