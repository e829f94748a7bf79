"""`cuda.jit` on the simulator: the decorator and the kernel it returns."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import replace

from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.numba_compiler import numba_without_gpu
from warplab.dropin.numba_cuda import args as argument_hints
from warplab.dropin.numba_cuda import exceptions
from warplab.dropin.runtime import COMPUTE_CAPABILITY, SHARED_BYTES
from warplab.launch import profiling
from warplab.launch.dimensions import dimensions
from warplab.launch.kernel_source import PythonSource
from warplab.launch.numba_arguments import types_of
from warplab.launch.simulate import simulate
from warplab.simulator import Entry, InvalidLaunch

_OPTIONS = ("extensions", "fastmath", "max_registers")
DEFAULT_THREADS = 256


def jit(
    func_or_sig=None,
    device: bool = False,
    inline="never",
    forceinline: bool = False,
    link=(),
    debug: bool | None = None,
    opt: bool | None = None,
    lineinfo: bool = False,
    cache: bool = False,
    launch_bounds: int | tuple[int, ...] | None = None,
    lto: bool | None = None,
    shared_memory_carveout=None,
    **options,
):
    """Compile a Python function for the GPU; arguments as those of `numba.cuda.jit`.

    A kernel is compiled when it is launched, or at once for the signatures given. Lines are always recorded, bounds
    always checked. `max_registers` counts where resources are asked for, such as `get_regs_per_thread()`. Accepted
    without effect: `cache`, `lto`, `shared_memory_carveout`. NotImplementedError for `extensions`.
    """
    from numba.cuda.core import sigutils

    _check_options(options, device, link)
    debug, opt = bool(debug), opt is not False
    if debug and opt and not device:
        warnings.warn("numba.cuda asks for opt=False where debug=True is given: a GPU may crash without", stacklevel=2)
    if sigutils.is_signature(func_or_sig):
        signatures = [func_or_sig]
    elif isinstance(func_or_sig, list):
        signatures = func_or_sig
    else:
        signatures = None

    def decorate(function: Callable):
        fastmath = bool(options.get("fastmath", False))
        inlining = {"inline": inline, "forceinline": forceinline}
        if device:
            device_options = {"fastmath": fastmath, "opt": opt, "debug": debug, **inlining}
            return _device_function(function, func_or_sig if signatures is not None else None, device_options)
        source = PythonSource(
            function,
            fastmath=fastmath,
            opt=opt,
            launch_bounds=launch_bounds,
            debug=debug,
            link=tuple(link),
            max_registers=options.get("max_registers"),
        )
        kernel = Kernel(source)
        if signatures is not None:
            source.signatures = [_argument_types(signature) for signature in signatures]
            for types in source.signatures:
                source.compile(types)
        return kernel

    return decorate if signatures is not None or func_or_sig is None else decorate(func_or_sig)


def _check_options(options: dict, device: bool, link) -> None:
    if options.get("boundscheck"):
        raise NotImplementedError(
            "bounds checking is not supported for CUDA; the simulator checks bounds without being asked"
        )
    unknown = sorted(set(options) - {*_OPTIONS, "boundscheck"})
    if unknown:
        raise TypeError(f"cuda.jit has no option {', '.join(unknown)}")
    if options.get("extensions"):
        raise NotImplementedError("extensions of cuda.jit are not on the simulator: convert the arguments yourself")
    if device and link:
        raise ValueError("link keyword invalid for device function: give it to the kernel, or to cuda.declare_device")


def _device_function(function: Callable, signatures, options: dict):
    # Numba's own device function: it is compiled into the kernels that call it. Functions made while no GPU is
    # there ask for one when they are compiled, which happens inside `numba_without_gpu`.
    from numba import cuda
    from numba.cuda.core.errors import NumbaInvalidConfigWarning

    with numba_without_gpu(COMPUTE_CAPABILITY), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaInvalidConfigWarning)  # of debug together with lineinfo
        make = functools.partial(cuda.jit, device=True, lineinfo=True, **options)
        return make(function) if signatures is None else make(signatures)(function)


def _argument_types(signature) -> tuple:
    from numba.cuda import types
    from numba.cuda.core import sigutils

    arguments, result = sigutils.normalize_signature(signature)
    if result is not None and result != types.void:
        raise TypeError("CUDA kernel must have void return type.")
    return tuple(arguments)


@functools.lru_cache(maxsize=256)
def _static_shared_bytes(entry: Entry) -> int:
    return entry.shared_bytes


class Kernel:
    """A kernel: `kernel[grid, block](*args)` runs it, also with `[grid, block, stream, shared_bytes]`.

    `py_func` is the Python function. A kernel that calls another one calls it as a device function.
    """

    def __init__(self, source: PythonSource) -> None:
        functools.update_wrapper(self, source.function)
        self._warplab_source = source
        self.py_func = source.function

    def __getitem__(self, configuration):
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ValueError(
                f"must specify at least the griddim and blockdim: {self.__name__}[blocks, threads_per_block](...)"
            )
        return self.configure(*configuration)

    def configure(self, griddim, blockdim, stream=0, sharedmem: int = 0) -> Callable[..., None]:
        """The kernel with a grid and a block (ints or up to three of them) and bytes of dynamic shared memory."""
        grid, block = dimensions(griddim, "griddim"), dimensions(blockdim, "blockdim")

        def launch(*args) -> None:
            args, copy_back = argument_hints.resolve(args)
            with self._launching(args, sharedmem):
                options = profiling.launch_options()
                profiling.record(simulate(self, grid, block, args, shared_bytes=sharedmem, **options))
            copy_back()

        return launch

    def _launching(self, args: tuple, sharedmem: int):
        """What is to be done around a launch: see that it may be, and raise what a debug kernel raises."""
        source = self._warplab_source
        signature = source.signature_of(args)
        entry = source.compile(signature)
        shared = _static_shared_bytes(entry) + sharedmem
        if shared > SHARED_BYTES:
            raise InvalidLaunch(
                f"{shared:,} bytes of shared memory a block; Numba launches kernels with at most {SHARED_BYTES:,}",
                reason="It does not ask the driver for more (numba-cuda issue 94). Use smaller tiles, or a kernel in "
                "CUDA C++ with its max_dynamic_shared_size_bytes.",
                kernel=source.name,
            )
        return exceptions.raised(entry, source.compiled[signature].program.exceptions, source.debug)

    def forall(self, ntasks: int, tpb: int = 0, stream=0, sharedmem: int = 0) -> Callable[..., None]:
        """The kernel with a 1-D grid of at least `ntasks` threads, `tpb` a block (256 where that is 0)."""
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        if ntasks == 0:
            return lambda *args: None
        threads = tpb or DEFAULT_THREADS
        return self.configure(-(-ntasks // threads), threads, stream, sharedmem)

    def __call__(self, *args, **kwargs):
        from numba.cuda.errors import missing_launch_config_msg

        raise ValueError(missing_launch_config_msg)

    @functools.cached_property
    def _as_device_function(self):
        source = self._warplab_source
        options = {"fastmath": source.fastmath, "opt": source.opt, "debug": source.debug}
        return _device_function(source.function, None, options)

    @property
    def _numba_type_(self):
        return self._as_device_function._numba_type_

    def compile(self, signature) -> None:
        """Compile for a signature or a tuple of Numba types."""
        self._warplab_source.compile(_argument_types(signature))

    def specialize(self, *args) -> Kernel:
        """The kernel for arguments of exactly these types."""
        if self.specialized:
            raise RuntimeError("Dispatcher already specialized")
        source = self._warplab_source
        types = types_of(source.name, source.parameters, argument_hints.resolve(args)[0])
        source.compile(types)
        return Kernel(replace(source, signatures=[types]))

    @property
    def specialized(self) -> bool:
        signatures = self._warplab_source.signatures
        return signatures is not None and len(signatures) == 1

    @property
    def signatures(self) -> list[tuple]:
        """Argument types that the kernel has been compiled for."""
        return list(self._warplab_source.signatures or self._warplab_source.compiled)

    # -- what was compiled: for one tuple of argument types, or for each of them -----------------------------------

    def _of_each(self, found: Callable, signature):
        return {types: found(types) for types in self.signatures} if signature is None else found(tuple(signature))

    def inspect_asm(self, signature: tuple | None = None) -> str | dict[tuple, str]:
        """PTX for a tuple of argument types; without one a dictionary of all."""
        return self._of_each(lambda types: self._warplab_source.compiled[types].ptx, signature)

    def inspect_llvm(self, signature: tuple | None = None) -> str | dict[tuple, str]:
        """LLVM code for a tuple of argument types; without one a dictionary of all."""

        def code(types: tuple) -> str:
            return self._warplab_source.compiled[types].program.library.get_llvm_str()

        return self._of_each(code, signature)

    def inspect_types(self, file=None) -> None:
        """Print the source with the types that Numba found for its variables."""
        for types in self.signatures:
            annotation = self._warplab_source.compiled[types].program.annotation
            print(self.__name__, types, file=file)
            print("-" * 80, annotation, "=" * 80, sep="\n", file=file)

    # -- what it needs: for one signature, of a specialised kernel, or for each ------------------------------------

    def _needed(self, found: Callable, signature):
        if signature is None and self.specialized:
            return found(self.signatures[0])
        return self._of_each(found, getattr(signature, "args", signature))

    def get_shared_mem_per_block(self, signature=None) -> int | dict[tuple, int]:
        """Bytes of static shared memory of a block."""
        return self._needed(lambda types: self._warplab_source.compiled[types].simulated.shared_bytes, signature)

    def get_const_mem_size(self, signature=None) -> int | dict[tuple, int]:
        """Bytes of constant memory, such as `cuda.const.array_like` fills."""

        def constants(types: tuple) -> int:
            variables = self._warplab_source.compiled[types].simulated.program.variables.values()
            return sum(variable.size for variable in variables if variable.space == "const")

        return self._needed(constants, signature)

    def get_regs_per_thread(self, signature=None) -> int | dict[tuple, int]:
        """Registers of a thread in machine code for compute capability 9.0, from NVIDIA's assembler.

        Where a kernel links other code, such as half-precision arithmetic, Numba on a GPU optimises across the two, and
        the number may differ.
        """
        return self._needed(lambda types: self._resources(types).registers, signature)

    def get_local_mem_per_thread(self, signature=None) -> int | dict[tuple, int]:
        """Bytes of local memory of a thread, for arrays and spilt registers, as `get_regs_per_thread`."""
        return self._needed(lambda types: self._resources(types).local_bytes, signature)

    def get_max_threads_per_block(self, signature=None) -> int | dict[tuple, int]:
        """Threads of the largest block that its registers and `launch_bounds` allow, as `get_regs_per_thread`."""
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
                f"{name}() of Numba's kernels is not on the simulator, which runs PTX: inspect_asm() shows that; "
                "machine code is shown by nvdisasm of the CUDA toolkit, on a GPU"
            )
        raise AttributeError(f"kernels on the simulator have no {name!r}")

    def __repr__(self) -> str:
        return f"<CUDA kernel {self.__name__}({', '.join(self._warplab_source.parameters)}) on the PTX simulator>"
