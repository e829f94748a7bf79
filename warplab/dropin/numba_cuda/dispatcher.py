"""Kernels and device functions of `cuda.jit` on the simulator.

The dispatcher is Numba's own: it types arguments, chooses among what was compiled, compiles what is missing and lets
other kernels call it. What it has compiled is a `CompiledKernel`, which launches on the simulator.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

from numba.cuda import types as numba_types

from warplab.compile import numba_internals
from warplab.compile.short_traceback import short_traceback
from warplab.dropin.numba_cuda.kernel import CompiledKernel
from warplab.dropin.numba_cuda.kernel_cache import KernelCache
from warplab.dropin.simulated_device import COMPUTE_CAPABILITY
from warplab.launch import dlpack
from warplab.launch.dimensions import dimensions
from warplab.launch.errors import ArgumentError, check_number, launch_of_numba
from warplab.launch.kernel_source import NumbaSource
from warplab.launch.numba_arguments import check_fits_one, no_match, types_of
from warplab.simulator.run.device import launching

DEFAULT_THREADS = 256
LOW_OCCUPANCY = 128  # blocks; with fewer Numba warns

_SOURCE_OPTIONS = ("fastmath", "opt", "launch_bounds", "debug", "link", "max_registers")


class NoLaunchConfiguration(ValueError):
    """A kernel called without a grid and a block. numba.cuda raises ValueError."""

    _render_traceback_ = short_traceback


class LaunchConfiguration(numba_internals.LaunchConfiguration):
    """What `kernel[grid, block, stream, sharedmem]` gives; calling it launches.

    `pre_launch_callbacks`: functions of (kernel, configuration) that are called before each launch.
    """

    def __init__(self, dispatcher: CUDADispatcher, griddim, blockdim, stream, sharedmem) -> None:
        # Numba's own makes a stream of the driver.
        self.dispatcher, self.griddim, self.blockdim = dispatcher, griddim, blockdim
        self.stream, self.sharedmem = stream, sharedmem
        self.pre_launch_callbacks: list[Callable] = []
        self._kernel_launch_config_sensitive = None
        _warn_of_low_occupancy(griddim)

    def __getstate__(self) -> dict:
        if self.pre_launch_callbacks:
            raise pickle.PicklingError("Cannot pickle configured launches with pre-launch callbacks")
        return {**self.__dict__, "stream": 0}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)


def _warn_of_low_occupancy(grid: tuple[int, int, int]) -> None:
    config, blocks = numba_internals.config, grid[0] * grid[1] * grid[2]
    if config.CUDA_LOW_OCCUPANCY_WARNINGS and not config.DISABLE_PERFORMANCE_WARNINGS and blocks < LOW_OCCUPANCY:
        message = f"Grid size {blocks} will likely result in GPU under-utilization due to low occupancy."
        warnings.warn(numba_internals.NumbaPerformanceWarning(message), stacklevel=4)


class CUDADispatcher(numba_internals.CUDADispatcher):
    """A kernel: `kernel[grid, block](*args)` runs it, also with `[grid, block, stream, shared_bytes]`.

    `py_func` is the Python function. A kernel that is called by another one runs as a device function.
    """

    _cache: Any  # the files of KernelCache, or Numba's NullCache

    def __init__(self, py_func: Callable, targetoptions: dict, **kwargs) -> None:
        super().__init__(py_func, targetoptions, **kwargs)
        if not targetoptions.get("device"):
            options = {name: targetoptions[name] for name in _SOURCE_OPTIONS if name in targetoptions}
            options["link"] = tuple(options.get("link") or ())
            self._warplab_source = NumbaSource(py_func, **options)

    # -- launch ----------------------------------------------------------------------------------------------------

    def __getitem__(self, configuration):
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise NoLaunchConfiguration(
                f"must specify at least the griddim and blockdim; write {self.__name__}[blocks, threads_per_block](...)"
            )
        return self.configure(*configuration)

    def configure(self, griddim, blockdim, stream=0, sharedmem: int = 0) -> LaunchConfiguration:
        """Return the kernel with a grid and a block (ints or tuples of 1 to 3) and bytes of dynamic shared memory."""
        grid, block = dimensions(griddim, "griddim"), dimensions(blockdim, "blockdim")
        return LaunchConfiguration(self, grid, block, stream, sharedmem)

    def call(self, args: tuple, launch_config) -> None:
        if self.targetoptions.get("device"):
            self.compile(())  # says that it is no kernel
        parameters = self._warplab_source.parameters
        check_number(f"kernel {self.__name__}({', '.join(parameters)})", len(parameters), args)
        args = tuple(dlpack.host_view(value) if dlpack.is_foreign(value) else value for value in args)
        if self.specialized and not self.extensions:
            types = types_of(self.__name__, parameters, args)
            check_fits_one(self.__name__, parameters, types, next(iter(self.overloads)))
        # On a GPU the launches of Numba's own kernels are profiled (warplab.launch.on_gpu); these are not Numba's.
        numba_internals.launch_kernel(self, args, launch_config)

    def forall(self, ntasks: int, tpb: int = 0, stream=0, sharedmem: int = 0) -> Callable[..., None]:
        """Return the kernel with a 1-D grid of at least `ntasks` threads, `tpb` per block (256 if that is 0)."""
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        if ntasks == 0:
            return lambda *args: None
        threads = tpb or DEFAULT_THREADS
        return self.configure(-(-ntasks // threads), threads, stream, sharedmem)

    def __call__(self, *args, **kwargs):
        parameters = ", ".join(self._compiler.pysig.parameters)
        if self.targetoptions.get("device"):
            raise NoLaunchConfiguration(
                f"Kernel launch configuration was not specified. {self.__name__} is a device function: kernels call "
                f"it. On the host {self.__name__}.py_func({parameters}) runs it in Python"
            )
        raise NoLaunchConfiguration(
            f"Kernel launch configuration was not specified. {launch_of_numba(self.__name__, parameters)}"
        )

    # -- what Numba's dispatcher asks for --------------------------------------------------------------------------

    def _compile_for_args(self, *args, **kws):
        if self.extensions:  # which may make something of arguments that a kernel does not take
            return super()._compile_for_args(*args, **kws)
        return self.compile(types_of(self.__name__, self._warplab_source.parameters, args))

    def _explain_matching_error(self, *args, **kws) -> None:
        parameters = self._warplab_source.parameters
        types = types_of(self.__name__, parameters, args)
        raise no_match(self.__name__, parameters, types, list(self.overloads))

    def _explain_ambiguous(self, *args, **kws) -> None:
        try:
            super()._explain_ambiguous(*args, **kws)
        except TypeError as error:
            raise ArgumentError(f"{error}\nConvert an argument, such as np.float32(x).") from None

    def compile(self, sig) -> CompiledKernel:
        """Compile for a signature or a tuple of Numba types, unless that is done."""
        if self.targetoptions.get("device"):
            raise RuntimeError(
                f"Cannot compile a device function as a kernel: {self.__name__} is one; launch a kernel that calls it"
            )
        types, _ = numba_internals.normalize_signature(sig)
        with launching:
            if self.specialized:
                return next(iter(self.overloads.values()))
            if types in self.overloads:
                return self.overloads[types]
            kernel = self._from_file(sig) or self._compiled(sig, tuple(types))
            self.add_overload(kernel, kernel.argument_types)
        return kernel

    # As Numba's `compile` does: a kernel that depends on its launch configuration has a file for each.

    def _from_file(self, sig) -> CompiledKernel | None:
        config = numba_internals.current_launch_config()
        self._configure_cache_for_launch_config(config)
        found = self._cache.load_overload(sig, self.targetctx)
        if found is None:
            return None
        if found.launch_config_sensitive:
            known = self._cache.is_launch_config_sensitive()
            self._cache.set_launch_config_key(self._cache_launch_config_key(config))
            if not known:
                self._mark_files()
                return None
        self._cache_hits[sig] += 1
        self._warplab_source.adopt(found.argument_types, found.program)
        kernel = CompiledKernel(self._warplab_source, found.argument_types, self.extensions)
        kernel.launch_config_sensitive = found.launch_config_sensitive
        return kernel

    def _compiled(self, sig, types: tuple) -> CompiledKernel:
        self._cache_misses[sig] += 1
        if not self._can_compile:
            raise RuntimeError("Compilation disabled")
        kernel = CompiledKernel(self._warplab_source, types, self.extensions)
        if kernel.launch_config_sensitive and isinstance(self._cache, KernelCache):
            self._cache.set_launch_config_key(self._cache_launch_config_key(numba_internals.current_launch_config()))
            self._mark_files()
        self._cache.save_overload(sig, kernel)
        return kernel

    def _mark_files(self) -> None:
        if not self._cache.mark_launch_config_sensitive():  # a reader could not tell that the file is of one launch
            self._cache = numba_internals.NullCache()

    def enable_caching(self) -> None:
        self._cache = KernelCache(self.py_func)

    def compile_device(self, args, return_type=None):
        with launching, numba_internals.numba_without_gpu(COMPUTE_CAPABILITY):
            return super().compile_device(args, return_type)

    def specialize(self, *args) -> CUDADispatcher:
        """Return the kernel for arguments of exactly these types, the same one for the same types."""
        if self.specialized:
            raise RuntimeError("Dispatcher already specialized")
        types = tuple(arg if isinstance(arg, numba_types.Type) else self.typeof_pyval(arg) for arg in args)
        key = COMPUTE_CAPABILITY, types
        with launching:
            if key not in self.specializations:
                found = self._again()
                found.compile(types)
                found.disable_compile()
                found._specialized = True
                self.specializations[key] = found
        return self.specializations[key]

    def _get_launch_config_specialization(self, key) -> CUDADispatcher:
        found = self._launch_config_specializations.get(key)
        if found is None:
            found = self._launch_config_specializations[key] = self._again()
            found._launch_config_sensitive = found._launch_config_is_specialized = True
            found._launch_config_specialization_key = found._launch_config_default_key = key
            if isinstance(self._cache, KernelCache):
                found.enable_caching()
                found._configure_cache_for_launch_config(None)
        return found

    def _again(self) -> CUDADispatcher:
        return CUDADispatcher(self.py_func, self.targetoptions, pipeline_class=self._compiler.pipeline_class)

    def disable_compile(self, val: bool = True) -> None:
        super().disable_compile(val)
        if not self.targetoptions.get("device"):
            self._warplab_source.signatures = list(self.overloads) if val else None

    def recompile(self) -> None:
        if not self.targetoptions.get("device"):
            self._warplab_source.specializations.clear()
        super().recompile()

    # -- what it needs: for one signature, of a specialised kernel, or for each ------------------------------------

    def get_shared_mem_per_block(self, signature=None) -> int | dict[tuple, int]:
        """Return the bytes of static shared memory per block. `signature`: Numba's, or a tuple of argument types."""
        return super().get_shared_mem_per_block(_signature(signature))

    def get_const_mem_size(self, signature=None) -> int | dict[tuple, int]:
        """Return the bytes of constant memory, such as `cuda.const.array_like` fills."""
        return super().get_const_mem_size(_signature(signature))

    def get_regs_per_thread(self, signature=None) -> int | dict[tuple, int]:
        """Return the registers per thread in machine code for compute capability 9.0, from NVIDIA's assembler.

        Where a kernel links other code, such as half-precision arithmetic, Numba on a GPU optimises across the two, and
        the number may differ.
        """
        return super().get_regs_per_thread(_signature(signature))

    def get_local_mem_per_thread(self, signature=None) -> int | dict[tuple, int]:
        """Return the bytes of local memory per thread, for arrays and spilled registers; see `get_regs_per_thread`."""
        return super().get_local_mem_per_thread(_signature(signature))

    def get_max_threads_per_block(self, signature=None) -> int | dict[tuple, int]:
        """Return the threads of the largest block that `get_regs_per_thread` and `launch_bounds` allow."""
        return super().get_max_threads_per_block(_signature(signature))

    # -- what was compiled: for one tuple of argument types, or for each of them -----------------------------------

    def inspect_asm(self, signature: tuple | None = None) -> str | dict[tuple, str]:
        """Return the PTX for a tuple of argument types; without one a dictionary of all."""
        with numba_internals.numba_without_gpu(COMPUTE_CAPABILITY):
            return super().inspect_asm(signature)

    def inspect_sass(self, signature: tuple | None = None) -> str | dict[tuple, str]:
        """Return nvdisasm's listing for compute capability 9.0 for a tuple of argument types, or a dictionary of all.

        `warplab.sass` shows the same beside the source.
        """
        return super().inspect_sass(signature)

    def inspect_sass_cfg(self, signature: tuple | None = None):
        raise AttributeError(_not_here("inspect_sass_cfg"))

    def inspect_lto_ptx(self, signature: tuple | None = None):
        raise AttributeError(_not_here("inspect_lto_ptx"))

    def __repr__(self) -> str:
        if self.targetoptions.get("device"):
            return super().__repr__()  # which is part of Numba's messages on a function's type
        parameters = ", ".join(self._compiler.pysig.parameters)
        return f"<CUDA kernel {self.__name__}({parameters}) on the PTX simulator>"


def _signature(given):
    if isinstance(given, tuple):
        return numba_internals.signature(numba_types.void, *given)
    return given


def _not_here(name: str) -> str:
    return (
        f"{name}() of Numba's kernels is not on the simulator, which runs PTX; use inspect_asm() to see that, "
        "and inspect_sass() or warplab.sass(kernel, arguments) for machine code"
    )
