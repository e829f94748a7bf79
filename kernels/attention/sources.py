"""The lab's CUDA C++ as it is compiled, and the shape of a call as kernels take it (`Shape` in fragments.cuh)."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from warpcourse.bench import hopper
from warpcourse.bench.device_arguments import check_apart, check_array
from warpcourse.bench.lab_kernels import Size, Sources, launch

SOURCES = Sources(__package__, own_headers=["."], cuda_headers=True)
SIZES = 32, 64, 80, 96, 128, 256  # of heads, that the kernels with tensor cores are compiled for
TYPES = {"float16": "half", "uint16": "bfloat16"}  # in CUDA C++, by NumPy's names; uint16 holds the bits of bfloat16
SHAPE = np.dtype([*((name, np.int32) for name in ("queries", "keys", "shared_by", "further")), ("scale", np.float32)])


@dataclass(frozen=True)
class Call:
    """One attention: sizes, and whether it is causal. `heads` of queries are those of all the batch."""

    batch: int
    heads: int
    shared_by: int
    queries: int
    keys: int
    size: int
    causal: bool
    scale: float

    @property
    def further(self) -> int:
        """Return how many keys beyond its own place a query sees."""
        return self.keys - self.queries if self.causal else self.keys

    @property
    def of_kernel(self) -> np.ndarray:
        """Return `Shape`, one element, which CuPy passes by value."""
        return np.array([(self.queries, self.keys, self.shared_by, self.further, self.scale)], SHAPE)


class Queued(NamedTuple):
    """A launch: `kernel()` gives the compiled kernel."""

    name: str
    kernel: Callable[[], Any]
    grid: Size
    block: Size
    arguments: tuple
    shared_bytes: int = 0


def queue(launches: Iterable[Queued]) -> None:
    """Launch one after another, without any check."""
    for made in launches:
        launch(made.kernel(), made.grid, made.block, made.arguments, made.shared_bytes)


def compiled(file: str, entry: str) -> Callable[[], Any]:
    """Return what gives the kernel `entry` of a file."""
    return functools.partial(SOURCES.function, file, entry)


def boxes(x: Any, rows: int) -> Any:
    """Return the tensor map of an array (..., length, size) that TMA reads in boxes of `rows` rows."""
    *heads, length, size = x.shape
    address, kind = hopper.address_of(x), x.dtype.name
    return hopper.encoded(hopper.Boxes(address, kind, length, size, rows, hopper.LINE, matrices=math.prod(heads)))


def checked_call(q: Any, k: Any, v: Any, causal: bool, scale: float | None, dtypes: tuple[Any, ...]) -> Call:
    """Return the call for device arrays q, k and v, of the shapes that `forward_pass.forward` names.

    Raise TypeError for arrays in host memory, ValueError for what does not fit.
    """
    for name, array in (("q", q), ("k", k), ("v", v)):
        check_array(name, array, dtype=dtypes if name == "q" else q.dtype, alignment=alignment_of(dtypes[0]))
        if len(array.shape) != 4:
            raise ValueError(f"{name} has shape {tuple(array.shape)}; it must be (batch, heads, length, size)")
    batch, heads, queries, size = q.shape
    of_keys, keys = k.shape[1:3]
    if tuple(k.shape) != (batch, of_keys, keys, size) or tuple(v.shape) != tuple(k.shape):
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)}: k and v must be of one shape, "
            "and batch and size those of q"
        )
    if not of_keys or heads % of_keys:
        raise ValueError(f"q has {heads} heads, and k {of_keys}: the heads of q must be a multiple of those of k")
    if max(queries, keys) >= 2**30 or batch * heads > 65535:
        raise ValueError(f"q has shape {tuple(q.shape)}; a grid has at most 65,535 heads, and a length is below 2^30")
    return Call(batch, batch * heads, heads // of_keys, queries, keys, size, causal, checked_scale(scale, size))


def alignment_of(dtype: Any) -> int:
    """Return the bytes that addresses of arrays of q's type must be a multiple of: halves move 16 bytes at a time."""
    return 16 if dtype.itemsize == 2 else 4


def checked_scale(scale: float | None, size: int) -> float:
    """Return the scale; ValueError unless float32 has it, as a normal number above 0."""
    if scale is None:
        return max(size, 1) ** -0.5
    normal = np.finfo(np.float32)
    if not normal.tiny <= scale <= normal.max:
        raise ValueError(f"scale is {scale}; it must be more than 0, and a normal number of float32")
    return scale


def check_size(size: int) -> None:
    """Raise ValueError unless the kernels with tensor cores are compiled for heads of this size."""
    if size not in SIZES:
        raise ValueError(f"heads have a size of {size}; kernels with tensor cores are for {', '.join(map(str, SIZES))}")


def check_output(name: str, array: Any, shape: tuple[int, ...], dtype: Any, *inputs: Any) -> None:
    """Raise unless `array` can take an output of that shape without overlap with the inputs."""
    check_array(name, array, shape, dtype=dtype, alignment=alignment_of(np.dtype(dtype)))
    for given in inputs:
        if given.nbytes and array.nbytes:
            check_apart("an input", given, array)
