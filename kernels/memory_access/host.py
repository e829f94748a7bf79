"""What the host code of lab 02's kernels shares: loading a kernel, launching it, the sizes of its arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def dimensions(array: Any, name: str, count: int) -> tuple[int, ...]:
    """Shape of an array that must have `count` dimensions, each below 2^31; else ValueError."""
    shape = tuple(array.shape)
    if len(shape) != count:
        raise ValueError(f"{name} has {len(shape)} dimensions; it must have {count}")
    if max(shape) >= 2**31:
        raise ValueError(f"{name} has shape {shape}; the kernel counts rows and columns with 32 bits")
    return shape
