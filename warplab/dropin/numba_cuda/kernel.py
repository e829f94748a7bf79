"""A kernel compiled for one tuple of argument types: what `kernel.overloads` holds. It launches on the simulator."""

from __future__ import annotations

import contextlib
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from cuda.core._utils.cuda_utils import CUDAError
from numba.cuda import types

from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.numba_compiler import NumbaProgram
from warplab.compile.numba_internals import NumbaPerformanceWarning, config, signature
from warplab.dropin.numba_cuda import args as argument_hints
from warplab.dropin.numba_cuda import kernel_exceptions
from warplab.dropin.numba_cuda.memory_management.nrt import rtsys
from warplab.dropin.simulated_device import MULTIPROCESSORS, SHARED_BYTES, in_use
from warplab.hardware.occupancy import theoretical
from warplab.launch import profiling
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.device_arrays import OnDevice
from warplab.launch.dimensions import dimensions
from warplab.launch.kernel_source import BoundKernel, NumbaSource
from warplab.launch.numba_arguments import pack_arguments
from warplab.launch.simulate import prepare
from warplab.simulator import InvalidLaunch, Options


class CompiledKernel:
    """The kernel of `source` for arguments of the Numba types `argument_types`. `extensions`: those of `cuda.jit`."""

    # What Numba's dispatcher asks of what it has compiled.
    objectmode = False
    entry_point = None
    codegen = None

    def __init__(self, source: NumbaSource, argument_types: tuple, extensions: list) -> None:
        self._source, self._found = source, source.compile(argument_types)
        self._chosen = _Chosen.of(source, argument_types)
        self.argument_types, self.extensions = argument_types, extensions
        self.signature = signature(types.void, *argument_types)
        self.py_func, self.debug = source.function, source.debug
        self.entry_name = self._found.program.entry
        self.launch_config_sensitive = bool((self.metadata or {}).get("launch_config_sensitive", False))

    # -- launch ----------------------------------------------------------------------------------------------------

    def launch(self, args: tuple, griddim, blockdim, stream=0, sharedmem: int = 0) -> None:
        """Launch, wait and copy host arrays back. `griddim`, `blockdim`: (x, y, z). `sharedmem`: bytes per block."""
        in_use()
        after: list[Callable[[], Any]] = []
        source, args = self._chosen, tuple(args)
        if self.extensions:
            given, args = self._extended(args, stream, after)
            source = _Chosen.of(self._source, self.argument_types, given)
        args, copy_back = argument_hints.resolve(args)
        _warn_of_host_arrays(args)
        shared_bytes = operator.index(sharedmem)
        with _as_of_the_driver(), prepare(source, args) as prepared:
            self._check_shared_bytes(prepared.bound.entry.shared_bytes + shared_bytes)
            rtsys.count(prepared.bound.entry)
            with kernel_exceptions.reraised(prepared.bound):
                options = Options(counters=profiling.active())
                profiling.record(prepared.run(griddim, blockdim, shared_bytes, options))
        copy_back()
        for function in after:
            function()

    def _extended(self, args: tuple, stream, after: list) -> tuple[tuple, tuple]:
        """Return types and values of the arguments as the extensions, the last one first, hand them on."""
        types, values = [], []
        for kind, value in zip(self.argument_types, args, strict=True):
            for extension in reversed(self.extensions):
                kind, value = extension.prepare_args(kind, value, stream=stream, retr=after)
            types.append(kind)
            values.append(value)
        return tuple(types), tuple(values)

    def _check_shared_bytes(self, shared_bytes: int) -> None:
        if shared_bytes > SHARED_BYTES:
            raise InvalidLaunch(
                f"{shared_bytes:,} bytes of shared memory per block; Numba launches kernels with up to "
                f"{SHARED_BYTES:,}",
                reason="It does not ask the driver for more (numba-cuda issue 94). Use smaller tiles, or a kernel in "
                "CUDA C++ with its max_dynamic_shared_size_bytes.",
                kernel=self._source.name,
            )

    # -- what was compiled -----------------------------------------------------------------------------------------

    @property
    def program(self) -> NumbaProgram:
        return self._found.program

    @property
    def library(self):
        """Return Numba's own object for the compiled code."""
        return self.program.library

    @property
    def type_annotation(self):
        return self.program.annotation

    _type_annotation = type_annotation  # as programs that look into Numba's kernels know it

    @property
    def metadata(self) -> dict | None:
        """Return what Numba noted while it compiled."""
        return self.program.metadata

    @property
    def ptx(self) -> str:
        return self._found.ptx

    def inspect_asm(self, cc=None) -> str:
        return self.ptx

    def inspect_llvm(self) -> str:
        return self.library.get_llvm_str()

    def inspect_sass(self) -> str:
        """Return nvdisasm's listing for compute capability 9.0."""
        from warplab.compile.disassembler import listing

        return listing(self._source.assemble(DEFAULT_ARCH, self.argument_types).cubin)

    def inspect_types(self, file=None) -> None:
        if self.type_annotation is None:
            raise ValueError("Type annotation is not available")
        file = sys.stdout if file is None else file
        print(self.entry_name, self.argument_types, file=file)
        print("-" * 80, self.type_annotation, "=" * 80, sep="\n", file=file)

    @property
    def links(self) -> bool:
        """Return whether its `cuda.jit` names code to link."""
        return bool(self._source.link)

    @property
    def cooperative(self) -> bool:
        """Return whether it waits for the whole grid."""
        return self.library.use_cooperative

    # -- what it needs ---------------------------------------------------------------------------------------------

    @property
    def shared_mem_per_block(self) -> int:
        return self._found.entry.shared_bytes

    @property
    def const_mem_size(self) -> int:
        variables = self._found.entry.program.variables.values()
        return sum(variable.size for variable in variables if variable.space == "const")

    @property
    def regs_per_thread(self) -> int:
        return self._resources().registers

    @property
    def local_mem_per_thread(self) -> int:
        return self._resources().local_bytes

    @property
    def max_threads_per_block(self) -> int:
        from warplab.launch import resources

        return resources.max_threads(self._resources(), self._source.launch_bounds)

    def max_cooperative_grid_blocks(self, blockdim, dynsmemsize: int = 0) -> int:
        """Return the blocks of the largest grid that fits on the device at once."""
        x, y, z = dimensions(blockdim, "blockdim")
        shared_bytes = self.shared_mem_per_block + dynsmemsize
        try:
            registers = self.regs_per_thread
        except RuntimeError:  # grid.sync() is of a library that the assembler does not have
            registers = 0
        found = theoretical("H100", x * y * z, registers=registers, shared_bytes=shared_bytes)
        return found.blocks * MULTIPROCESSORS

    def _resources(self):
        from warplab.launch import resources

        return resources.of_types(self._source, self.argument_types, DEFAULT_ARCH)


class RefusedLaunch(InvalidLaunch, CUDAError):
    """A launch that no GPU accepts. Numba raises the driver's CUDAError, which programs may catch."""


@contextlib.contextmanager
def _as_of_the_driver() -> Iterator[None]:
    try:
        yield
    except InvalidLaunch as error:
        error.what += " (CUDA_ERROR_INVALID_VALUE)"
        error.args = (error.message(),)
        error.__class__ = RefusedLaunch
        raise


def _warn_of_host_arrays(args: tuple) -> None:
    if not config.CUDA_WARN_ON_IMPLICIT_COPY or config.DISABLE_PERFORMANCE_WARNINGS:
        return
    if any(isinstance(arg, np.ndarray) and not isinstance(arg, OnDevice) for arg in args):
        message = "Host array used in CUDA kernel will incur copy overhead to/from device."
        warnings.warn(NumbaPerformanceWarning(message), stacklevel=5)


@dataclass(eq=False)
class _Chosen(NumbaSource):
    """A source whose types Numba's dispatcher has chosen: its one signature.

    `given`: the types that the arguments are packed as, where an extension has changed them.
    """

    given: tuple | None = None

    @classmethod
    def of(cls, source: NumbaSource, types: tuple, given: tuple | None = None) -> _Chosen:
        parts = {field.name: getattr(source, field.name) for field in fields(NumbaSource)}
        return cls(**parts | {"signatures": [types]}, given=given)

    def signature_of(self, args: tuple) -> tuple:
        assert self.signatures is not None
        return self.signatures[0]

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel:
        if self.given is None:
            return super().bind(args, arrays)
        found = self.compile(self.signature_of(args))
        params = pack_arguments(self.parameters, self.given, args, arrays.address)
        return BoundKernel(found.entry, params, self.assembler(args), found.program.exceptions if self.debug else None)
