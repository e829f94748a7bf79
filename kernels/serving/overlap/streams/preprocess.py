"""A decoded frame (NV12) made into the planes that a network takes: kernels, launches, and NumPy's answer.

Colours by ITU-R BT.601 in its limited range; resized bilinearly between pixel centres; then, for each channel,
(value / 255 - mean) / std.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from warpcourse.bench.compared_launches import Launch
from warpcourse.bench.device_arguments import check_array
from warpcourse.bench.lab_kernels import Kernel, Sources, by_name, choose
from warplab.dropin import choice

SOURCES = Sources(__package__)
KERNELS = by_name(
    Kernel("cuda_preprocess", SOURCES, "preprocess.cu", "preprocess"),
    Kernel("numba_preprocess", SOURCES, "preprocess_numba.py", "preprocess"),
)
BLOCK = (32, 8)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's red, green and blue, from 0 to 1, as most trained networks for images expect them."""


class Preprocess:
    """The kernel with its constants on the device: `prepare(nv12, out)`.

    `mean`, `std`: three numbers each, for red, green and blue from 0 to 1; std above 0. `kernel`: a name in KERNELS.
    """

    def __init__(
        self, mean: Sequence[float] = MEAN, std: Sequence[float] = STD, kernel: str = "cuda_preprocess"
    ) -> None:
        if len(mean) != 3 or len(std) != 3 or not all(s > 0 for s in std):
            raise ValueError(f"mean={mean}, std={std}: give three numbers each, for red, green, blue; std above 0")
        self.kernel = choose(KERNELS, kernel)
        cp = choice.load("cp")
        self.scale, self.shift = (cp.asarray(values) for values in _constants(mean, std))

    def __call__(self, nv12: Any, out: Any) -> Any:
        """Queue the kernel for one frame in the current stream; return `out` at once.

        `nv12`: uint8, (height * 3 / 2, width), even sizes, rows may lie further apart than they are long (CUDA C++
        only). `out`: float32, (3, rows, columns), without gaps; both on the device. TypeError for arrays in host
        memory, ValueError for every other argument that does not fit.
        """
        pitch = _pitch(nv12)
        check_array("out", out, (None, None, None))
        if out.shape[0] != 3:
            raise ValueError(f"out has shape {tuple(out.shape)}; it must be (3, rows, columns): red, green, blue")
        if out.size:  # a grid of no blocks is an invalid launch
            self.kernel.launch(
                grid(*out.shape[1:]), BLOCK, arguments(self.kernel, nv12, pitch, out, self.scale, self.shift)
            )
        return out


def arguments(kernel: Kernel, nv12: Any, pitch: int, out: Any, scale: Any, shift: Any) -> tuple:
    """Return what the kernel takes: Numba's arrays know their sizes, CUDA C++ needs them."""
    if kernel.language == "Numba":
        return nv12, out, scale, shift
    height, width = nv12.shape[0] // 3 * 2, nv12.shape[1]
    _, rows, columns = out.shape
    sizes = np.int32(pitch), np.int32(height), np.int32(width)
    return (nv12, *sizes, out, np.int32(rows), np.int32(columns), scale, shift)


def grid(rows: int, columns: int) -> tuple[int, int]:
    """Return blocks across and down."""
    return math.ceil(columns / BLOCK[0]), math.ceil(rows / BLOCK[1])


def by_numpy(
    nv12: np.ndarray, rows: int, columns: int, mean: Sequence[float] = MEAN, std: Sequence[float] = STD
) -> np.ndarray:
    """Return the same planes from NumPy, in float64 until the end: float32, (3, rows, columns)."""
    height, width = nv12.shape[0] // 3 * 2, nv12.shape[1]
    y = (np.arange(rows)[:, None] + 0.5) * height / rows
    x = (np.arange(columns)[None, :] + 0.5) * width / columns
    chroma = nv12[height:].astype(float)
    luma = _bilinear(nv12[:height].astype(float), y, x) - 16
    blue, red = (_bilinear(chroma[:, first::2], y / 2, x / 2) - 128 for first in (0, 1))
    rgb = np.stack(
        [luma * 1.164384 + change for change in (1.596027 * red, -0.391762 * blue - 0.812968 * red, 2.017232 * blue)]
    )
    scale, shift = (values[:, None, None] for values in _constants(mean, std))
    return (rgb.clip(0, 255) * scale + shift).astype(np.float32)


def _bilinear(plane: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    top, left = np.floor(y - 0.5), np.floor(x - 0.5)
    y0, y1 = (np.clip(top + i, 0, plane.shape[0] - 1).astype(int) for i in (0, 1))
    x0, x1 = (np.clip(left + i, 0, plane.shape[1] - 1).astype(int) for i in (0, 1))
    down, right = y - 0.5 - top, x - 0.5 - left
    upper = plane[y0, x0] * (1 - right) + plane[y0, x1] * right
    lower = plane[y1, x0] * (1 - right) + plane[y1, x1] * right
    return upper * (1 - down) + lower * down


def _constants(mean: Sequence[float], std: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return (value / 255 - mean) / std as value * scale + shift."""
    means, stds = np.asarray(mean, float), np.asarray(std, float)
    return (1 / (255 * stds)).astype(np.float32), (-means / stds).astype(np.float32)


def _pitch(nv12: Any) -> int:
    interface = getattr(nv12, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"nv12 is a {type(nv12).__name__} in host memory; copy it with cp.asarray(nv12)")
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    if interface["typestr"] != "|u1" or len(shape) != 2:
        raise ValueError(f"nv12 is {np.dtype(interface['typestr'])} of shape {shape}; a frame is uint8 with two axes")
    if shape[0] % 3 or shape[1] % 2 or 0 in shape:
        raise ValueError(
            f"nv12 has shape {shape}; a frame is (height * 3 / 2, width), with even numbers of both: half as many "
            "rows of chroma follow those of luma"
        )
    if strides is not None and (strides[1] != 1 or strides[0] < shape[1]):
        raise ValueError(f"nv12 has strides {tuple(strides)}; the bytes of a row must lie side by side")
    return shape[1] if strides is None else int(strides[0])


def launches() -> list[Launch]:
    """Return launches whose counters are compared with Nsight Compute's: a frame made smaller, and one kept in size."""
    found = []
    for height, width, rows, columns in ((64, 96, 32, 48), (48, 70, 48, 70)):
        nv12 = np.random.default_rng(width).integers(0, 256, (height * 3 // 2, width), np.uint8)
        out = np.full((3, rows, columns), np.nan, np.float32)
        for kernel in KERNELS.values():
            given = arguments(kernel, nv12, width, out, *_constants(MEAN, STD))
            name = f"{kernel.name}, {height} × {width} to {rows} × {columns}"
            found.append(Launch(name, kernel.function, grid(rows, columns), BLOCK, given))
    return found
