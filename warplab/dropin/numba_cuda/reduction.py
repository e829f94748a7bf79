"""`cuda.reduce` and `cuda.Reduce` on the simulator: Numba's own kernels, launched as Numba launches them."""

from collections.abc import Callable
from typing import ClassVar

from warplab.compile.numba_internals import from_dtype, gpu_reduce_factory
from warplab.dropin.numba_cuda.api import device_array
from warplab.dropin.numba_cuda.decorators import jit
from warplab.dropin.numba_cuda.dispatcher import CUDADispatcher

_BLOCK = 128  # threads, for whose partial results the kernel has room; it expects whole or single blocks
_MOST_BLOCKS = 64


class Reduce:
    """A reduction of an array, made from a function of two values; also a decorator, `@cuda.reduce`.

    The function should be associative. Numbers are combined in the order of the GPU, so that sums of floats equal those
    of a GPU.
    """

    _kernels: ClassVar[dict[tuple, CUDADispatcher]] = {}

    def __init__(self, functor: Callable) -> None:
        self._functor = functor

    def __call__(self, arr, size: int | None = None, res=None, init=0, stream=0):
        """Combine all elements of the 1-D array `arr`, or its first `size`, with each other and with `init`.

        Return the result, or write it into the first element of the device array `res`. Without elements return `init`.
        """
        if arr.ndim != 1:
            raise TypeError("only support 1D array")
        arr = arr if size is None else arr[:size]
        init = arr.dtype.type(init)
        if arr.size == 0:
            return init
        kernel = self._kernel(arr.dtype)
        whole = arr.size // _BLOCK * _BLOCK
        rest, blocks = arr.size - whole, min(whole // _BLOCK, _MOST_BLOCKS)
        partials = device_array(blocks + bool(rest), arr.dtype)
        if whole:
            kernel[blocks, _BLOCK, stream](arr[:whole], partials[:blocks], init, True)
        if rest:
            kernel[1, rest, stream](arr[whole:], partials[blocks:], init, not blocks)
        if partials.size > 1:
            kernel[1, partials.size, stream](partials, partials, init, False)
        if res is None:
            return partials[0]
        res[:1].copy_to_device(partials[:1], stream)
        return None

    def _kernel(self, dtype) -> CUDADispatcher:
        key = self._functor, dtype
        if key not in self._kernels:
            made = gpu_reduce_factory(self._functor, from_dtype(dtype))
            self._kernels[key] = jit(made.py_func)
        return self._kernels[key]
