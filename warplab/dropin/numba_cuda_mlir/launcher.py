"""A launch of a kernel of numba-cuda-mlir: arguments as MLIR lays them out, and the PTX that its compiler made."""

from __future__ import annotations

import contextlib
import enum
import math
import struct
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numba_cuda_mlir import _cext, compiler, descriptor, types
from numba_cuda_mlir.mlir_lowering import ERROR_CODE_GLOBAL_NAME
from numba_cuda_mlir.numba_cuda.cudadrv.linkable_code import CUSource, LinkableCode, PTXSource
from numba_cuda_mlir.numba_cuda.np.numpy_support import as_dtype
from numba_cuda_mlir.numba_cuda.typing.typeof import typeof_impl

from warplab import simulator
from warplab.compile import ptx_assembler, ptx_linking
from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.linked_code import LinkedCode
from warplab.compile.ptx_assembler import Assembled
from warplab.compile.source_files import label_files, shared_array_names
from warplab.dropin.numba_cuda import api
from warplab.dropin.simulated_device import MULTIPROCESSORS
from warplab.hardware.occupancy import theoretical
from warplab.launch import profiling, resources
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.device_arrays import DeviceArray
from warplab.launch.dimensions import dimensions
from warplab.launch.errors import ArgumentError, check_number
from warplab.launch.kernel_source import BoundKernel, is_empty
from warplab.launch.simulate import prepare

EXCEPTIONS = {  # in the extension module's words
    1: (AssertionError, "Kernel assertion failed"),
    2: (IndexError, "Index out of bounds in kernel"),
    3: (ValueError, "Invalid value in kernel"),
    4: (RuntimeError, "Runtime error in kernel"),
    5: (ZeroDivisionError, "Division by zero in kernel"),
}


@dataclass(eq=False)
class MlirSource:
    """A kernel compiled for arguments of `types`, as `warplab.launch` asks for it. `parameters`: their names."""

    function: Any
    parameters: list[str]
    types: tuple
    ptx: str
    symbol: str
    language: ClassVar[str] = "Numba"

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def blank(self) -> bool:
        return is_empty(self.function)

    @cached_property
    def entry(self) -> simulator.Entry:
        ptx, sources = label_files(self.ptx)
        entry = simulator.load(ptx, sources).entries[self.symbol]
        shared = [v.name for dynamic in (False, True) for v in entry.shared_variables(dynamic)]
        entry.source_names = shared_array_names(self.function, shared)
        return entry

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel:
        params: list[bytes] = []
        for name, kind, value in zip(self.parameters, self.types, args, strict=True):
            params += _pack(name, kind, value, arrays)
        return BoundKernel(self.entry, params, self.assemble)

    def assembler(self, args: tuple):
        return self.assemble

    def assemble(self, arch: int) -> Assembled:
        """Return machine code for capability `arch`, 90 or newer: the PTX is that of 9.0."""
        if arch < DEFAULT_ARCH:
            raise ValueError(f"{self.name} was compiled for compute capability 9.0, not for {arch / 10}")
        return ptx_assembler.assemble(self.ptx, self.symbol, arch)


def _pack(name: str, kind: Any, value: Any, arrays: ArrayPlacement) -> list[bytes]:
    """Return the bytes of each .param that an argument becomes: an array is a memref of MLIR (base, data, offset,
    sizes and strides in elements)."""
    if isinstance(kind, types.Array):
        address, item = arrays.address(value, name), value.dtype.itemsize
        words = [address, address, 0, *value.shape, *(stride // item for stride in value.strides)]
        return [struct.pack("<q" if word < 0 else "<Q", word) for word in words]
    if isinstance(kind, types.Record):
        return [arrays.address(value, name).to_bytes(8, "little")]
    if isinstance(kind, types.BaseTuple):
        return [part for one, item in zip(kind, value, strict=True) for part in _pack(name, one, item, arrays)]
    if isinstance(kind, types.EnumMember):
        return _pack(name, kind.dtype, value.value, arrays)
    if isinstance(kind, types.Integer | types.CPointer):  # what is too large wraps round
        bits = getattr(kind, "bitwidth", 64)
        return [(int(value) & (1 << bits) - 1).to_bytes(bits // 8, "little")]
    if isinstance(kind, types.Float | types.Boolean | types.Complex | types.NPDatetime | types.NPTimedelta):
        return [np.asarray(value, as_dtype(kind)).tobytes()]
    raise ArgumentError(f"argument `{name}` has the type {kind}, which the simulator does not pass to these kernels")


def linked(compiled: Any) -> str:
    """Return the PTX of a compiled kernel with what it links: CUDA C++ and PTX, as text or in files.

    Raises NotImplementedError for compiled code, CompileError for CUDA C++ that does not compile.
    """
    modules = [compiled.ptx]
    for item in compiled.metadata.get("linked_external_link_items", ()):
        if Path(str(item)).name == "libcudadevrt.a":  # whose barriers of the grid the simulator has
            continue
        code = LinkableCode.from_path_or_obj(item)
        if not isinstance(code, CUSource | PTXSource) or code.setup_callback or code.teardown_callback:
            raise NotImplementedError(
                f"{code.name} cannot be linked on the simulator, which runs PTX and has no driver; link CUDA C++ or "
                "PTX without callbacks"
            )
        text = code.data if isinstance(code.data, str) else code.data.decode()
        name = item if isinstance(item, str) else code.name
        modules.append(LinkedCode(name, text, isinstance(code, PTXSource), numbas_own=False).ptx(DEFAULT_ARCH))
    return ptx_linking.link(modules) if len(modules) > 1 else modules[0]


def keep_attributes(compiled: Any) -> None:
    """Do what `CompileResult._ensure_kernel_attrs` does: keep what a compiled kernel needs of an SM."""
    if "regs_per_thread" in compiled.metadata:
        return
    ptx, symbol = linked(compiled), compiled.metadata["func_name"]
    found = resources.reported(ptx_assembler.assemble(ptx, symbol, DEFAULT_ARCH), DEFAULT_ARCH)
    entry = simulator.load(ptx).entries[symbol]
    constants = [v.size for v in entry.program.variables.values() if v.space == "const"]
    compiled.metadata.update(
        regs_per_thread=found.registers,
        shared_mem_per_block=entry.shared_bytes,
        const_mem_size=sum(constants),
        local_mem_per_thread=found.local_bytes,
        max_threads_per_block=resources.max_threads(found),
    )


def most_cooperative_blocks(compiled: Any, blockdim: Any, dynsmemsize: int = 0) -> int:
    """Return the blocks of the largest grid that fits on the device at once."""
    symbol = compiled.metadata["func_name"]
    shared = simulator.load(linked(compiled)).entries[symbol].shared_bytes + dynsmemsize
    with contextlib.suppress(RuntimeError):  # grid.sync() is of a library that the assembler does not have
        keep_attributes(compiled)
    registers = compiled.metadata.get("regs_per_thread", 0)
    threads = math.prod(dimensions(blockdim, "blockdim"))
    return theoretical("H100", threads, registers=registers, shared_bytes=shared).blocks * MULTIPROCESSORS


class KernelDispatcher:
    """Stands for the extension module's class of the same name: what a kernel's launches share."""

    def __init__(self, compile_kernel, constant_args, ensure_context, *, debug=False, literal_arg_flags=()) -> None:
        self.compile, self.dispatcher = compile_kernel, compile_kernel.__self__
        self.dispatcher.targetoptions["lineinfo"] = not debug  # every error and report names lines
        self.debug = debug
        self.parameters = self.dispatcher._compiler.pysig.parameters
        kinds = [parameter.kind for parameter in self.parameters.values()]
        self.rest = kinds.index(Parameter.VAR_POSITIONAL) if Parameter.VAR_POSITIONAL in kinds else None  # `*args`
        self.sources: dict[tuple, MlirSource] = {}

    def source(self, kinds: tuple, args: tuple) -> MlirSource:
        """Return the kernel for arguments of these types, compiled at the first call. Raises ArgumentError."""
        function, parameters = self.dispatcher.py_func, list(self.parameters)
        if self.rest is None:
            check_number(f"kernel {function.__name__}({', '.join(parameters)})", len(parameters), kinds)
        if kinds not in self.sources:
            cubin, symbol, *_ = self.compile(args)
            compiled = [*self.dispatcher.overloads.values(), *self.dispatcher._launch_config_overloads.values()]
            found = next(one for one in compiled if one.cres.metadata["cubin"] is cubin)
            self.sources[kinds] = MlirSource(function, parameters, tuple(found.signature.args), linked(found), symbol)
        return self.sources[kinds]


class LaunchConfiguration:
    """Stands for the extension module's class of the same name: `kernel[grid, block, stream, sharedmem, cluster]`."""

    def __init__(self, kernel: KernelDispatcher, grid, block, stream, sharedmem, cluster=None) -> None:
        self.kernel, self.grid, self.block = kernel, grid, block
        self.shared_bytes, self.cluster = int(sharedmem or 0), cluster

    def __call__(self, *flat) -> None:
        """Launch with the values of the tuples among the arguments one after the other, and wait."""
        state = descriptor._compile_arg_types
        args = tuple(map(_array, state.values))
        for value in args:
            if isinstance(value, enum.Enum) and not isinstance(value.value, int | float):
                raise ArgumentError(f"enum members with {type(value.value).__name__} values are not supported")
        source = self.kernel.source(tuple(state.types), flat)
        if (rest := self.kernel.rest) is not None:
            args = (*args[:rest], args[rest:])
        options = simulator.Options(counters=profiling.active(), cluster=self.cluster)
        with prepare(source, args) as prepared:
            code = _error_code(source.entry) if self.kernel.debug else np.zeros(1)
            code[0] = 0
            profiling.record(prepared.run(self.grid, self.block, self.shared_bytes, options))
            if code[0]:
                kind, words = EXCEPTIONS[int(code[0])]
                raise kind(words)


def _array(value: Any) -> Any:
    """Return an array of another library, which may have no more than `__cuda_array_interface__`, as one of ours."""
    foreign = hasattr(value, "__cuda_array_interface__") and not isinstance(value, DeviceArray)
    return api.as_cuda_array(value) if foreign else value


def _error_code(entry: simulator.Entry) -> np.ndarray:
    """Return the variable in which a kernel compiled with `debug=True` keeps the first exception's number."""
    device = simulator.default_device()
    return device.memory.view(device.variable_address(entry.program, ERROR_CODE_GLOBAL_NAME), 4).view(np.int32)


@typeof_impl.register(DeviceArray)
def _type_of(array: DeviceArray, context: Any) -> Any:
    """Return the type of an array on the device, also in a tuple: that of its values on the host."""
    return typeof_impl(array._view, context)


def _check_interface(argument: Any) -> None:
    """Do what is left of `descriptor._sync_cuda_array_interface_stream` where every stream is in order."""
    if interface := descriptor._cuda_array_interface(argument):
        descriptor._validate_cuda_array_interface(interface)


def replace_native() -> None:
    """Let kernels be launched by these classes, and arrays of the simulated device be arguments."""
    _cext.KernelDispatcher = KernelDispatcher
    descriptor.LaunchConfiguration = LaunchConfiguration
    compiler.CompileResult._ensure_kernel_attrs = keep_attributes
    compiler.CompileResult._max_cooperative_grid_blocks = most_cooperative_blocks
    descriptor._sync_cuda_array_interface_stream = _check_interface
