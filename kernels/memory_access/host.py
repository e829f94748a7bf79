"""What the host code of lab 02's kernels shares: loading a kernel, launching it, checks of its arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warplab import cp

FOLDER = Path(__file__).parent
BLOCK = 256  # threads a block, unless a kernel says otherwise
FLOAT4_BYTES = 16
RADII = (1, 2, 4, 8, 16, 32)  # for which the stencils of `stencil.cu` are compiled
FLIGHTS = [(width, items) for width in (4, 16) for items in (1, 2, 4, 8)]  # bytes a load, loads a thread
_TYPES = {4: "float", 16: "float4"}
# Instances of templates; the other kernels are extern "C".
_EXPRESSIONS = {
    "access": [f"copy_in_flight<{_TYPES[width]}, {items}>" for width, items in FLIGHTS],
    "stencil": [f"{kind}<{radius}>" for kind in ("mean_l1", "mean_shared") for radius in RADII],
}


@dataclass(frozen=True)
class Kernel:
    """One kernel. `name`: unique in its table; `language`: "CUDA C++" or "Numba".

    `file`: name of the .cu file without its ending; `entry`: the function's name, or of a template as "f<4>".
    `alignment`: bytes that the arrays' addresses must be a multiple of.
    """

    name: str
    language: str
    file: str
    entry: str
    alignment: int = 4

    def function(self) -> Any:
        """The compiled kernel: a CuPy function (CUDA C++) or a Numba dispatcher, of the active backend."""
        if self.language == "Numba":
            from kernels.memory_access import numba_kernels

            return getattr(numba_kernels, self.entry)
        return cuda_function(self.file, self.entry)

    def start(self, grid: Sequence[int], block: Sequence[int], arguments: tuple) -> None:
        """Launches without any check; returns before the kernel has finished."""
        if self.language == "Numba":
            self.function()[tuple(grid), tuple(block)](*arguments)
        else:
            self.function()(tuple(grid), tuple(block), arguments)


@functools.cache
def cuda_function(file: str, entry: str) -> Any:
    """A kernel of FILE.cu on the active backend."""
    return _module(file).get_function(entry)


def in_flight(width: int, items: int) -> str:
    """Name of the instance of `copy_in_flight` whose threads load `items` times `width` bytes."""
    if (width, items) not in FLIGHTS:
        raise ValueError(
            f"there is no copy of {items} loads of {width} bytes; (bytes, loads) can be {', '.join(map(str, FLIGHTS))}"
        )
    return f"copy_in_flight<{_TYPES[width]}, {items}>"


@functools.cache
def _module(file: str) -> Any:
    return cp.RawModule(
        code=(FOLDER / f"{file}.cu").read_text(),
        options=("-std=c++17", "-lineinfo"),
        name_expressions=_EXPRESSIONS.get(file),
    )


def choose(kernels: dict[str, Any], name: str) -> Any:
    """The kernel of that name; ValueError names the others."""
    if name not in kernels:
        raise ValueError(f"there is no kernel {name!r}; choose one of {', '.join(kernels)}")
    return kernels[name]


def check_array(
    name: str, array: Any, shape: tuple[int, ...] | None = None, *, dtype: Any = np.float32, alignment: int = 4
) -> None:
    """Raises TypeError or ValueError, naming array and remedy, unless `array` is on the device and as asked for."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{name} is a {type(array).__name__} in host memory; copy it with cp.asarray({name})")
    found = np.dtype(interface["typestr"])
    if found != dtype:
        raise ValueError(f"{name} is {found}; the kernel takes {np.dtype(dtype)}")
    if shape is not None and tuple(interface["shape"]) != shape:
        raise ValueError(f"{name} has shape {tuple(interface['shape'])}; it must be {shape}")
    if not _contiguous(interface):
        raise ValueError(f"{name} is not contiguous; copy it with cp.ascontiguousarray({name})")
    offset = interface["data"][0] % alignment
    if offset:
        raise ValueError(
            f"{name} starts {offset} bytes past a multiple of {alignment}, which loads of {alignment} bytes need; "
            f"copy it with {name}.copy(), or choose a kernel without float4"
        )


def check_apart(a: Any, out: Any) -> None:
    """Raises ValueError if two arrays share memory: the kernel would read what it has written."""
    starts = [x.__cuda_array_interface__["data"][0] for x in (a, out)]
    if starts[0] < starts[1] + out.nbytes and starts[1] < starts[0] + a.nbytes:
        raise ValueError("the input and out overlap, and the kernel does not work in place; give out memory of its own")


def dimensions(array: Any, name: str, count: int) -> tuple[int, ...]:
    """Shape of an array that must have `count` dimensions, each below 2^31; else ValueError."""
    shape = tuple(array.shape)
    if len(shape) != count:
        raise ValueError(f"{name} has {len(shape)} dimensions; it must have {count}")
    if max(shape) >= 2**31:
        raise ValueError(f"{name} has shape {shape}; the kernel counts rows and columns with 32 bits")
    return shape


def _contiguous(interface: dict[str, Any]) -> bool:
    """Whether the array has no gaps in C order."""
    strides = interface.get("strides")
    if strides is None:
        return True
    expected = np.dtype(interface["typestr"]).itemsize
    for length, stride in zip(reversed(interface["shape"]), reversed(strides), strict=True):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True
