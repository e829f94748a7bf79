"""Descriptors of libcudnn's functions: created, set, and destroyed together."""

from collections.abc import Sequence
from ctypes import byref, c_int, c_void_p
from typing import Any

from kernels.convolution.cudnn import library

TYPES = {"float32": 0, "float16": 2}  # cudnnDataType_t
FLOAT = TYPES["float32"]
FORMATS = {"NCHW": 0, "NHWC": 1}  # cudnnTensorFormat_t
MATH = ("DEFAULT", "TENSOR_OP", "TENSOR_OP_ALLOW_CONVERSION", "FMA")  # cudnnMathType_t, in order


class Descriptors:
    """Descriptors that live as long as this object's `with` block, or until `close`."""

    def __init__(self) -> None:
        self._all: list[tuple[str, c_void_p]] = []

    def __enter__(self) -> Any:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Destroy the descriptors."""
        self.close()

    def close(self) -> None:
        """Destroy the descriptors, the last first."""
        while self._all:
            kind, descriptor = self._all.pop()
            library.call(f"cudnnDestroy{kind}Descriptor", descriptor)

    def create(self, kind: str) -> c_void_p:
        """Return a new descriptor; `kind` as in the functions' names: "Tensor", "Filter", "Pooling"."""
        descriptor = c_void_p()
        library.call(f"cudnnCreate{kind}Descriptor", byref(descriptor))
        self._all.append((kind, descriptor))
        return descriptor

    def tensor(self, nchw: Sequence[int], layout: str, dtype: str) -> c_void_p:
        """Return a tensor of sizes N C H W, in memory as `layout` says."""
        descriptor = self.create("Tensor")
        set_numbers("cudnnSetTensor4dDescriptor", descriptor, FORMATS[layout], TYPES[dtype], *nchw)
        return descriptor


def set_numbers(name: str, descriptor: c_void_p, *numbers: int) -> None:
    """Call a function that takes a descriptor and C ints."""
    library.call(name, descriptor, *map(c_int, numbers))


def math_type(dtype: str, tensor_cores: bool) -> int:
    """Return cudnnMathType_t: with tensor cores as the type has them (TF32 for float32), or fused multiply-adds
    alone."""
    return MATH.index(("TENSOR_OP" if dtype == "float16" else "DEFAULT") if tensor_cores else "FMA")
