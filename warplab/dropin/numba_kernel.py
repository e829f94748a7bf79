"""`cuda.jit` on the simulator: the decorator and the kernel it returns."""

from __future__ import annotations

import functools
from collections.abc import Callable

from warplab import profiling
from warplab.compilers import numba_without_gpu
from warplab.dropin.runtime import COMPUTE_CAPABILITY
from warplab.kernel import PythonSource, dimensions, simulate
from warplab.numba_arguments import types_of

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

    A kernel is compiled when it is launched, or at once for the signatures given. Lines are always recorded.
    Accepted without effect: `cache`, `debug`, `lto`, `max_registers`, `shared_memory_carveout`. NotImplementedError
    for `link`.
    """
    from numba.cuda.core import sigutils

    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise TypeError(f"cuda.jit has no option {', '.join(unknown)}")
    if link:
        raise NotImplementedError("the simulator links no other files: put the code into the kernel's own source")
    if sigutils.is_signature(func_or_sig):
        signatures = [func_or_sig]
    elif isinstance(func_or_sig, list):
        signatures = func_or_sig
    else:
        signatures = None

    def decorate(function: Callable):
        if device:
            return _device_function(function, func_or_sig if signatures is not None else None, inline, options)
        source = PythonSource(
            function,
            fastmath=bool(options.get("fastmath", False)),
            opt=opt is not False,
            launch_bounds=launch_bounds,
        )
        kernel = Kernel(source)
        if signatures is not None:
            source.signatures = [_argument_types(signature) for signature in signatures]
            for types in source.signatures:
                source.compile(types)
        return kernel

    return decorate if signatures is not None or func_or_sig is None else decorate(func_or_sig)


def _device_function(function: Callable, signatures, inline, options: dict):
    # Numba's own device function: it is compiled into the kernels that call it. Functions made while no GPU is
    # there ask for one when they are compiled, which happens inside `numba_without_gpu`.
    from numba import cuda

    fastmath = bool(options.get("fastmath", False))
    make = functools.partial(cuda.jit, device=True, inline=inline, lineinfo=True, fastmath=fastmath)
    with numba_without_gpu(COMPUTE_CAPABILITY):
        return make(function) if signatures is None else make(signatures)(function)


def _argument_types(signature) -> tuple:
    from numba.cuda import types
    from numba.cuda.core import sigutils

    arguments, result = sigutils.normalize_signature(signature)
    if result is not None and result != types.void:
        raise TypeError("CUDA kernel must have void return type.")
    return tuple(arguments)


class Kernel:
    """A kernel: `kernel[grid, block](*args)` runs it, also with `[grid, block, stream, shared_bytes]`.

    `py_func` is the Python function.
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
            options = profiling.launch_options()
            profiling.record(simulate(self, grid, block, args, shared_bytes=sharedmem, **options))

        return launch

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

    def compile(self, signature) -> None:
        """Compile for a signature or a tuple of Numba types."""
        self._warplab_source.compile(_argument_types(signature))

    def specialize(self, *args) -> Kernel:
        """The kernel for arguments of exactly these types."""
        source = self._warplab_source
        types = types_of(source.name, source.parameters, args)
        source.compile(types)
        return Kernel(
            PythonSource(source.function, [types], source.fastmath, source.opt, source.launch_bounds, source.compiled)
        )

    @property
    def specialized(self) -> bool:
        signatures = self._warplab_source.signatures
        return signatures is not None and len(signatures) == 1

    @property
    def signatures(self) -> list[tuple]:
        """Argument types that the kernel has been compiled for."""
        return list(self._warplab_source.compiled)

    def inspect_asm(self, signature: tuple | None = None) -> str | dict[tuple, str]:
        """PTX for a tuple of argument types; without one a dictionary of all (the PTX if specialised)."""
        compiled = self._warplab_source.compiled
        if signature is not None:
            return compiled[signature][0]
        if self.specialized:
            return compiled[self._warplab_source.signatures[0]][0]
        return {types: ptx for types, (ptx, _) in compiled.items()}

    def get_shared_mem_per_block(self, signature: tuple | None = None) -> int | dict[tuple, int]:
        """Bytes of static shared memory of a block."""
        compiled = self._warplab_source.compiled
        if signature is not None:
            return compiled[signature][1].shared_bytes
        return {types: entry.shared_bytes for types, (_, entry) in compiled.items()}

    def __repr__(self) -> str:
        return f"<CUDA kernel {self.__name__}({', '.join(self._warplab_source.parameters)}) on the PTX simulator>"
