"""`cuda.vectorize` and `cuda.guvectorize` on the simulator: functions of elements become functions of arrays.

Numba's own classes resolve types and shapes and write the kernels; here they get the simulator's arrays and launches.
"""

from collections.abc import Callable

import numpy as np
from numba import cuda

from warplab.compile import numba_internals
from warplab.dropin.numba_cuda import api
from warplab.dropin.numba_cuda.cudadrv.devicearray import DeviceNDArray
from warplab.dropin.numba_cuda.decorators import jit
from warplab.launch.device_arrays import OnDevice


def vectorize(ftylist_or_function=(), target: str = "cuda", **kws) -> Callable:
    """Make a function of arrays from one of numbers. `ftylist_or_function`: signatures, such as ["float32(float32)"].

    Host arrays are copied to the device and the result back; the result of device arrays stays on the device.
    """
    signatures = [ftylist_or_function] if isinstance(ftylist_or_function, str) else ftylist_or_function
    if callable(signatures) or not signatures:
        raise TypeError('cuda.vectorize needs the types; write @cuda.vectorize(["float32(float32, float32)"])')
    _check_target(target)

    def wrap(func: Callable) -> UFunc:
        identity, cache = kws.pop("identity", None), kws.pop("cache", False)
        return _built(Vectorize(func, identity=identity, cache=cache, targetoptions=kws), signatures)

    return wrap


def guvectorize(*args, **kwargs) -> Callable:
    """Make a function of large arrays from one of small ones: `guvectorize(types, layout)`, as in "(n),()->(n)"."""
    if len(args) != 2:
        raise TypeError(
            "cuda.guvectorize needs types and layout; write "
            '@cuda.guvectorize(["(float32[:], float32, float32[:])"], "(n),()->(n)")'
        )
    signatures, layout = [args[0]] if isinstance(args[0], str) else args[0], args[1]
    _check_target(kwargs.pop("target", "cuda"))

    def wrap(func: Callable) -> GeneralizedUFunc:
        options = {name: kwargs.pop(name, default) for name, default in (("identity", None), ("cache", False))}
        writable = kwargs.pop("writable_args", ())
        builder = GUVectorize(func, layout, **options, targetoptions=kwargs, writable_args=writable)
        return _built(builder, signatures)

    return wrap


def install() -> None:
    """Let `numba.vectorize(..., target="cuda")` and `numba.guvectorize` reach the simulator."""
    for decorator, builder in (
        (numba_internals.HostVectorize, Vectorize),
        (numba_internals.HostGUVectorize, GUVectorize),
    ):
        decorator.target_registry.ondemand.pop("cuda", None)
        decorator.target_registry.pop("cuda", None)  # the registry takes a name once
        decorator.target_registry["cuda"] = builder


def _check_target(target: str) -> None:
    if target != "cuda":
        raise ValueError(f"Unsupported target: {target}")


def _built(builder, signatures):
    for signature in signatures:
        builder.add(signature)
    return builder.build_ufunc()


class _Arrays:
    """Answers to what both kinds of function ask about arrays."""

    def is_device_array(self, obj) -> bool:
        return api.is_cuda_array(obj)

    def as_device_array(self, obj) -> OnDevice:
        return api.as_cuda_array(obj)

    def to_device(self, hostary, stream=0) -> OnDevice:
        return api.to_device(np.ascontiguousarray(hostary))

    def allocate_device_array(self, shape, dtype, stream=0) -> DeviceNDArray:
        return api.device_array(shape, dtype)


def _broadcast(array: DeviceNDArray, shape: tuple[int, ...]) -> DeviceNDArray:
    """Repeat the array along axes, in the same memory."""
    return DeviceNDArray._wrap(array._buffer, np.broadcast_to(array._view, shape))


class _UFuncMechanism(_Arrays, numba_internals.CUDAUFuncMechanism):
    def _broadcast(self, arys: list) -> list:
        axes = max(a.ndim for a in arys)
        if any(a.ndim < axes and a.size > 1 for a in arys):
            raise ValueError(
                "Numba repeats the first element of an array that has fewer axes than the others, where NumPy repeats "
                "the array; give it the missing axes, a.reshape(1, -1)"
            )
        return super()._broadcast(arys)

    def broadcast_device(self, ary: DeviceNDArray, shape) -> DeviceNDArray:
        return _broadcast(ary, tuple(shape))


class UFunc(numba_internals.CUDAUFuncDispatcher):
    """A function of `cuda.vectorize`: `f(a, b, out=None, stream=0)`, `f.reduce(a)`."""

    def __call__(self, *args, **kws):
        return _UFuncMechanism.call(self.functions, args, kws)

    def reduce(self, arg, stream=0):
        """Combine all elements of a 1-D array; the function must take two arguments."""
        if any(len(types) != 2 for types in self.functions):
            raise TypeError("must be a binary ufunc")
        if arg.ndim != 1:
            raise TypeError("must use 1d array")
        if not arg.size:
            raise TypeError("Reduction on an empty array.")
        array = DeviceNDArray._from_host(np.asarray(arg))
        while array.size > 1:
            half = array.size // 2
            rest = array[2 * half :]
            array = self(array[:half], array[half : 2 * half])
            if rest.size:
                self(array[:1], rest, out=array[:1])
        return array[0]


class Vectorize(numba_internals.CUDAVectorize):
    def _compile_core(self, sig):
        core = jit(sig, device=True, inline="always")(self.pyfunc)
        return core, core.overloads[sig.args].signature.return_type

    def _compile_kernel(self, fnobj, sig):
        return jit(fnobj)

    def build_ufunc(self) -> UFunc:
        return UFunc(self.kernelmap, self.pyfunc)


class _CallSteps(_Arrays, numba_internals.CUDAGUFuncCallSteps):
    __slots__ = ()


class GeneralizedUFunc(numba_internals.CUDAGeneralizedUFunc):
    """A function of `cuda.guvectorize`."""

    @property
    def _call_steps(self) -> type:
        return _CallSteps

    def _broadcast_scalar_input(self, ary: DeviceNDArray, shape: int) -> DeviceNDArray:
        return _broadcast(ary.reshape(1), (shape,))

    def _broadcast_add_axis(self, ary: DeviceNDArray, newshape) -> DeviceNDArray:
        return _broadcast(ary, tuple(newshape))


class GUVectorize(numba_internals.CUDAGUFuncVectorize):
    def _compile_kernel(self, fnobj, sig):
        return jit(sig)(fnobj)

    def _get_globals(self, sig):
        core = jit(sig, device=True)(self.pyfunc)
        return {**self.py_func.__globals__, "__cuda__": cuda, "__core__": core}

    def build_ufunc(self) -> GeneralizedUFunc:
        engine = numba_internals.GUFuncEngine(self.inputsig, self.outputsig)
        return GeneralizedUFunc(kernelmap=self.kernelmap, engine=engine, pyfunc=self.pyfunc)
