"""Kernels of `cuda.jit` on the simulator."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.numba_compiler import numba_without_gpu
from warplab.compile.short_traceback import short_traceback
from warplab.dropin.numba_cuda import args as argument_hints
from warplab.dropin.numba_cuda import kernel_exceptions
from warplab.dropin.simulated_device import COMPUTE_CAPABILITY, SHARED_BYTES
from warplab.launch import profiling
from warplab.launch.dimensions import dimensions
from warplab.launch.errors import launch_of_numba
from warplab.launch.kernel_source import NumbaSource, Specialization
from warplab.launch.numba_arguments import types_of
from warplab.launch.simulate import prepare
from warplab.simulator import InvalidLaunch, Options

DEFAULT_THREADS = 256


class NoLaunchConfiguration(ValueError):
    """A kernel called without a grid and a block. numba.cuda raises ValueError."""

    _render_traceback_ = short_traceback


def device_function(function: Callable, signatures, options: dict):
    """Make Numba's own device function, which is compiled into the kernels that call it.

    Without a GPU it asks for one when it is compiled, which happens inside `numba_without_gpu`.
    """
    from numba import cuda
    from numba.cuda.core.errors import NumbaInvalidConfigWarning

    with numba_without_gpu(COMPUTE_CAPABILITY), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaInvalidConfigWarning)  # of debug together with lineinfo
        make = functools.partial(cuda.jit, device=True, lineinfo=True, **options)
        made = make(function) if signatures is None else make(signatures)(function)
    compile_device = made.compile_device

    def compile_without_gpu(args: tuple, return_type=None):
        with numba_without_gpu(COMPUTE_CAPABILITY):
            return compile_device(args, return_type)

    made.compile_device = compile_without_gpu
    return made


def argument_types(signature) -> tuple:
    """Return the argument types of a kernel's signature. Raises TypeError if it returns something."""
    from numba.cuda import types
    from numba.cuda.core import sigutils

    arguments, result = sigutils.normalize_signature(signature)
    if result is not None and result != types.void:
        raise TypeError("CUDA kernel must have void return type.")
    return tuple(arguments)


class CUDADispatcher:
    """A kernel: `kernel[grid, block](*args)` runs it, also with `[grid, block, stream, shared_bytes]`.

    `py_func` is the Python function. A kernel that is called by another one runs as a device function.
    """

    def __init__(self, source: NumbaSource) -> None:
        functools.update_wrapper(self, source.function)
        self._warplab_source = source
        self.py_func = source.function
        self.specializations: dict[tuple, CUDADispatcher] = {}  # by compute capability and argument types
        self.extensions: list = []

    def __getitem__(self, configuration):
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ValueError(
                f"must specify at least the griddim and blockdim; write {self.__name__}[blocks, threads_per_block](...)"
            )
        return self.configure(*configuration)

    def configure(self, griddim, blockdim, stream=0, sharedmem: int = 0) -> Callable[..., None]:
        """Return the kernel with a grid and a block (ints or tuples of 1 to 3) and bytes of dynamic shared memory."""
        grid, block = dimensions(griddim, "griddim"), dimensions(blockdim, "blockdim")

        def launch(*args) -> None:
            args, copy_back = argument_hints.resolve(args)
            with prepare(self._warplab_source, args) as prepared:
                self._check_shared_bytes(prepared.bound.entry.shared_bytes + sharedmem)
                with kernel_exceptions.reraised(prepared.bound):
                    options = Options(counters=profiling.active())
                    profiling.record(prepared.run(grid, block, operator.index(sharedmem), options))
            copy_back()

        return launch

    def _check_shared_bytes(self, shared_bytes: int) -> None:
        if shared_bytes > SHARED_BYTES:
            raise InvalidLaunch(
                f"{shared_bytes:,} bytes of shared memory per block; Numba launches kernels with up to "
                f"{SHARED_BYTES:,}",
                reason="It does not ask the driver for more (numba-cuda issue 94). Use smaller tiles, or a kernel in "
                "CUDA C++ with its max_dynamic_shared_size_bytes.",
                kernel=self._warplab_source.name,
            )

    def forall(self, ntasks: int, tpb: int = 0, stream=0, sharedmem: int = 0) -> Callable[..., None]:
        """Return the kernel with a 1-D grid of at least `ntasks` threads, `tpb` per block (256 if that is 0)."""
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        if ntasks == 0:
            return lambda *args: None
        threads = tpb or DEFAULT_THREADS
        return self.configure(-(-ntasks // threads), threads, stream, sharedmem)

    def __call__(self, *args, **kwargs):
        parameters = ", ".join(self._warplab_source.parameters)
        raise NoLaunchConfiguration(
            f"Kernel launch configuration was not specified. {launch_of_numba(self.__name__, parameters)}"
        )

    @functools.cached_property
    def _as_device_function(self):
        source = self._warplab_source
        options = {"fastmath": source.fastmath, "opt": source.opt, "debug": source.debug}
        return device_function(source.function, None, options)

    @property
    def _numba_type_(self):
        return self._as_device_function._numba_type_

    def compile(self, signature) -> None:
        """Compile for a signature or a tuple of Numba types."""
        self._warplab_source.compile(argument_types(signature))

    def specialize(self, *args) -> CUDADispatcher:
        """Return the kernel for arguments of exactly these types, the same one for the same types."""
        if self.specialized:
            raise RuntimeError("Dispatcher already specialized")
        source = self._warplab_source
        types = types_of(source.name, source.parameters, argument_hints.resolve(args)[0])
        key = COMPUTE_CAPABILITY, types
        if key not in self.specializations:
            source.compile(types)
            self.specializations[key] = CUDADispatcher(replace(source, signatures=[types]))
        return self.specializations[key]

    @property
    def specialized(self) -> bool:
        signatures = self._warplab_source.signatures
        return signatures is not None and len(signatures) == 1

    @property
    def signatures(self) -> list[tuple]:
        """Argument types that the kernel has been compiled for."""
        return list(self._warplab_source.signatures or self._warplab_source.specializations)

    @property
    def overloads(self) -> Mapping[tuple, Specialization]:
        """What was compiled, by argument types."""
        return MappingProxyType(self._warplab_source.specializations)

    # -- what was compiled: for one tuple of argument types, or for each of them -----------------------------------

    def _of_each(self, found: Callable, signature):
        return {types: found(types) for types in self.signatures} if signature is None else found(tuple(signature))

    def inspect_asm(self, signature: tuple | None = None) -> str | dict[tuple, str]:
        """Return the PTX for a tuple of argument types; without one a dictionary of all."""
        return self._of_each(lambda types: self._warplab_source.specializations[types].ptx, signature)

    def inspect_llvm(self, signature: tuple | None = None) -> str | dict[tuple, str]:
        """Return the LLVM code for a tuple of argument types; without one a dictionary of all."""

        def code(types: tuple) -> str:
            return self._warplab_source.specializations[types].program.library.get_llvm_str()

        return self._of_each(code, signature)

    def inspect_sass(self, signature: tuple | None = None) -> str | dict[tuple, str]:
        """Return nvdisasm's listing for compute capability 9.0 for a tuple of argument types, or a dictionary of all.

        `warplab.sass` shows the same beside the source.
        """
        from warplab.compile.disassembler import listing

        def code(types: tuple) -> str:
            return listing(self._warplab_source.assemble(DEFAULT_ARCH, types).cubin)

        return self._of_each(code, signature)

    def inspect_types(self, file=None) -> None:
        """Print the source with the types that Numba found for its variables."""
        for types in self.signatures:
            annotation = self._warplab_source.specializations[types].program.annotation
            print(self.__name__, types, file=file)
            print("-" * 80, annotation, "=" * 80, sep="\n", file=file)

    # -- what it needs: for one signature, of a specialised kernel, or for each ------------------------------------

    def _needed(self, found: Callable, signature):
        if signature is None and self.specialized:
            return found(self.signatures[0])
        return self._of_each(found, getattr(signature, "args", signature))

    def get_shared_mem_per_block(self, signature=None) -> int | dict[tuple, int]:
        """Return the bytes of static shared memory per block."""
        return self._needed(lambda types: self._warplab_source.specializations[types].entry.shared_bytes, signature)

    def get_const_mem_size(self, signature=None) -> int | dict[tuple, int]:
        """Return the bytes of constant memory, such as `cuda.const.array_like` fills."""

        def constants(types: tuple) -> int:
            variables = self._warplab_source.specializations[types].entry.program.variables.values()
            return sum(variable.size for variable in variables if variable.space == "const")

        return self._needed(constants, signature)

    def get_regs_per_thread(self, signature=None) -> int | dict[tuple, int]:
        """Return the registers per thread in machine code for compute capability 9.0, from NVIDIA's assembler.

        Where a kernel links other code, such as half-precision arithmetic, Numba on a GPU optimises across the two, and
        the number may differ.
        """
        return self._needed(lambda types: self._resources(types).registers, signature)

    def get_local_mem_per_thread(self, signature=None) -> int | dict[tuple, int]:
        """Return the bytes of local memory per thread, for arrays and spilled registers; see `get_regs_per_thread`."""
        return self._needed(lambda types: self._resources(types).local_bytes, signature)

    def get_max_threads_per_block(self, signature=None) -> int | dict[tuple, int]:
        """Return the threads of the largest block that `get_regs_per_thread` and `launch_bounds` allow."""
        from warplab.launch import resources

        def largest(types: tuple) -> int:
            return resources.max_threads(self._resources(types), self._warplab_source.launch_bounds)

        return self._needed(largest, signature)

    def _resources(self, types: tuple):
        from warplab.launch import resources

        return resources.of_types(self._warplab_source, types, DEFAULT_ARCH)

    def __getattr__(self, name: str):
        if name.startswith("inspect_"):
            raise AttributeError(
                f"{name}() of Numba's kernels is not on the simulator, which runs PTX; use inspect_asm() to see that, "
                "and inspect_sass() or warplab.sass(kernel, arguments) for machine code"
            )
        raise AttributeError(f"kernels on the simulator have no {name!r}")

    def __repr__(self) -> str:
        return f"<CUDA kernel {self.__name__}({', '.join(self._warplab_source.parameters)}) on the PTX simulator>"
