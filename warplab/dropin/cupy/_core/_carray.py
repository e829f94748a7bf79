"""Kernels that CuPy writes around a program's snippets: their arguments in C++, and as bytes of the launch.

The types and their layout are those of CuPy (cupy/_core/_carray.pyx, _scalar.pyx); the headers are this project's own,
in `warplab/compile/include/cupy`.
"""

import math
import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from ml_dtypes import bfloat16

from warplab.dropin.cupy._core.core import ndarray
from warplab.dropin.cupy.cuda.texture import TextureObject
from warplab.launch import profiling
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.kernel_source import BoundKernel, CudaSource
from warplab.launch.launch_record import Assemble
from warplab.launch.simulate import simulate

_TYPE_NAMES = {
    np.dtype("?"): "bool",
    np.dtype("f4"): "float",
    np.dtype("f8"): "double",
    np.dtype("f2"): "float16",
    np.dtype(bfloat16): "bfloat16",
    np.dtype("c8"): "complex<float>",
    np.dtype("c16"): "complex<double>",
    np.dtype("i1"): "signed char",
    np.dtype("i2"): "short",
    np.dtype("i4"): "int",
    np.dtype("i8"): "long long",
    np.dtype("u1"): "unsigned char",
    np.dtype("u2"): "unsigned short",
    np.dtype("u4"): "unsigned int",
    np.dtype("u8"): "unsigned long long",
}
C_TYPES = frozenset(_TYPE_NAMES.values())
TEXTURE = "cudaTextureObject_t"
_SMALL = 2**31  # bytes of an array up to which its indices have 32 bits


def type_name(dtype) -> str:
    """Return what CuPy calls a dtype in C++. Raises ValueError."""
    if dtype == TEXTURE:
        return TEXTURE
    try:
        return _TYPE_NAMES[np.dtype(dtype)]
    except KeyError:
        raise ValueError(f"Unsupported dtype {np.dtype(dtype)}") from None


@dataclass(frozen=True)
class Indexer:
    """CIndexer: the shape of a loop."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def c_type(self) -> str:
        return f"CIndexer<{len(self.shape)}, {int(self.size < _SMALL)}>"

    def pack(self) -> bytes:
        return struct.pack(f"<{1 + 2 * len(self.shape)}q", self.size, *self.shape, *(0 for _ in self.shape))


def c_type(argument) -> str:
    """Return the C++ type of an argument: an array, a NumPy scalar, an `Indexer` or a texture."""
    if isinstance(argument, Indexer):
        return argument.c_type
    if isinstance(argument, TextureObject):
        return TEXTURE
    name = type_name(argument.dtype)
    if not isinstance(argument, ndarray):
        return name
    reach = sum((n - 1) * abs(stride) for n, stride in zip(argument.shape, argument.strides, strict=True))
    small = int(argument.size == 0 or reach + argument.itemsize < _SMALL)
    return f"CArray<{name}, {argument.ndim}, {int(argument.flags.c_contiguous)}, {small}>"


@dataclass(frozen=True)
class GeneratedSource:
    """A kernel written around snippets. `names`: of its parameters, as the program calls them."""

    source: CudaSource
    names: tuple[str, ...]
    language: ClassVar[str] = "CUDA C++"
    blank: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.source.name

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel:
        entry = self.source.load()
        params = [_packed(value, name, arrays) for value, name in zip(args, self.names, strict=True)]
        return BoundKernel(entry, params, self.source.assemble, max_registers=self.source.max_registers)

    def assembler(self, args: tuple) -> Assemble:
        return self.source.assemble


def _packed(value, name: str, arrays: ArrayPlacement) -> bytes:
    if isinstance(value, Indexer):
        return value.pack()
    if isinstance(value, TextureObject):
        return struct.pack("<Q", value.ptr)
    if not isinstance(value, ndarray):
        return value.tobytes()
    address = arrays.address(value, name) if value.size else 0
    return struct.pack(f"<Qq{2 * value.ndim}q", address, value.size, *value.shape, *value.strides)


class GeneratedKernel:
    """A compiled kernel, as `simulate` takes it: `launch` runs it on the simulator."""

    def __init__(self, code: str, name: str, names: tuple[str, ...], options: tuple[str, ...]) -> None:
        source = CudaSource(headers(code) + code, name, options, f"{name}.cu", by_cupy=True)
        self._warplab_source = GeneratedSource(source, names)

    def launch(self, blocks: int, threads: int, args: tuple, **options) -> None:
        profiling.record(simulate(self, blocks, threads, args, counters=profiling.active(), **options))


def headers(code: str) -> str:
    """Return the includes that code needs, on one line. CuPy gives all to every kernel."""
    needed = ["complex"] * ("complex<" in code) + ["float16"] * ("float16" in code) + ["carray"]
    return "".join(f"#include <cupy/{name}.cuh>\n" for name in needed)
