"""The simulator's end of the stand-in for libcudart: what each call of the host's part does to the simulated device.

A method has the name that `include/warplab_cudart.h` asks for, takes integers, and returns a `Reply`. Everything is
done in the order of the calls, and at once, whatever the stream.
"""

import contextlib
import functools
import re
import socket
import struct
import warnings
from pathlib import Path
from typing import NamedTuple

from warplab import simulator
from warplab.compile import source_files
from warplab.compile.headers import include_folders
from warplab.dropin.simulated_device import NO_TIME, check_dynamic_bytes
from warplab.hardware import occupancy
from warplab.hardware.cards import Card
from warplab.launch import profiling, resources
from warplab.launch.kernel_source import BoundKernel
from warplab.launch.simulate import PreparedLaunch
from warplab.program.build import Kernel, Program
from warplab.simulator.memory.device_memory import ORIGIN, Allocation
from warplab.simulator.memory.tensor_maps import encode_tiled
from warplab.simulator.run.device import launching

_HEAD, _REPLY = struct.Struct("4q"), struct.Struct("6q")
# Of cudaError_t.
_INVALID, _NO_MEMORY, _CONFIGURATION, _SYMBOL, _DEVICE = 1, 2, 9, 13, 101
_ADDRESS, _ASSERT, _MISALIGNED, _LAUNCH, _UNSUPPORTED = 700, 710, 716, 719, 801
_TEXTS = {  # as cudaGetErrorString of CUDA 13 gives them
    0: "no error",
    _INVALID: "invalid argument",
    _NO_MEMORY: "out of memory",
    _CONFIGURATION: "invalid configuration argument",
    _SYMBOL: "invalid device symbol",
    98: "invalid device function",
    100: "no CUDA-capable device is detected",
    _DEVICE: "invalid device ordinal",
    600: "device not ready",
    _ADDRESS: "an illegal memory access was encountered",
    _ASSERT: "device-side assert triggered",
    _MISALIGNED: "misaligned address",
    _LAUNCH: "unspecified launch failure",
    _UNSUPPORTED: "operation not supported",
}
_FREED_BY: dict[int | None, tuple[str, str]] = {
    None: ("a variable of the device", "It is there until the program ends."),
    1: ("pinned host memory", "It is freed by cudaFreeHost."),
}
# What a process may still ask once a kernel has failed; driver_types.h: "any further CUDA work will return the same
# error". Wrong calls are told nevertheless, as a race, say, would go unnoticed on a GPU.
_AFTER_A_FAULT = ("cudaGetLast", "cudaGetError", "parameters", "variable")
_KINDS = ("HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice", "Default")


class InvalidCall(simulator.SimulatorError):
    """A call of the CUDA runtime that cannot be right. `code`: the cudaError_t that it returns."""

    code = _INVALID


class UnsupportedCall(InvalidCall, simulator.UnsupportedInstruction):
    """A call of which nothing is known to be wrong, but which is not there."""

    code = _UNSUPPORTED


class Reply(NamedTuple):
    """What a call returns: an error, 0 for none, up to four numbers, and a text."""

    error: int = 0
    values: tuple[int, ...] = ()
    text: bytes = b""


class Runtime:
    """Serves one process. `where`: the call that is being served, an address in its code."""

    def __init__(self, program: Program, device: simulator.Device, card: Card) -> None:
        self.program, self.device, self.card = program, device, card
        self.memory = device.memory
        self.variables = dict(program.instances)
        self.shared: set[int] = set()  # allocations that the host can reach
        self.sticky = 0  # a kernel has failed: as on a GPU, every later call says so
        self.where = 0
        self._kinds: dict[int, int] = {}  # of allocations: cudaMemoryType
        self._made: dict[int, int] = {}  # the call that made an allocation
        self._warned: dict = {}

    def serve(self, line: socket.socket) -> None:
        """Answer calls until the process ends."""
        with line.makefile("rb") as calls, contextlib.suppress(ConnectionError):
            while len(head := calls.read(_HEAD.size)) == _HEAD.size:
                length, count, more, self.where = _HEAD.unpack(head)
                name = calls.read(length).decode()
                numbers = struct.unpack(f"{count}q", calls.read(8 * count))
                reply = self._answer(name, numbers, calls.read(more))
                values = (*reply.values, 0, 0, 0, 0)[:4]
                line.sendall(_REPLY.pack(reply.error, len(reply.text), *values) + reply.text)

    def _answer(self, name: str, numbers: tuple[int, ...], more: bytes) -> Reply:
        try:
            if name.startswith("launch"):
                return self._launch(name, numbers, more)
            if name == "touched":
                return self.touched(numbers[0], struct.unpack(f"{len(more) // 8}q", more))
            if name == "cuTensorMapEncodeTiled":
                return self.tensor_map(numbers, struct.unpack(f"{len(more) // 8}q", more))
            reply = getattr(self, name, self.synchronize)(*numbers)
        except InvalidCall as error:
            self._failed(error)
            return Reply(self.sticky or error.code)
        except MemoryError:
            return Reply(_NO_MEMORY)
        return reply._replace(error=self.sticky) if self.sticky and not name.startswith(_AFTER_A_FAULT) else reply

    def _failed(self, error: simulator.SimulatorError) -> None:
        file, error.line = self.program.place(self.where)
        error.file, text = source_files.read(file)
        error.sources = {error.file: text}
        rows = text.splitlines()
        error.source = rows[error.line - 1] if 0 < error.line <= len(rows) else None
        error.args = (error.message(),)
        with profiling.launched_from(self._place):
            profiling.failed(error)

    def _place(self) -> list | None:
        file, line = self.program.place(self.where)
        return [str(Path(file).absolute()), line] if file else None

    def synchronize(self, *_: int) -> Reply:
        return Reply()  # all is done by now

    def cudaEventElapsedTime(self) -> Reply:
        """Warn once for each line that asks: what it gets is NaN."""
        file, line = self.program.place(self.where)
        warnings.warn_explicit(
            f"{NO_TIME}; the report estimates",
            RuntimeWarning,
            file or "cudaEventElapsedTime",
            line,
            registry=self._warned,
        )
        return Reply()

    # -- memory --------------------------------------------------------------------------------------------

    def _allocate(self, nbytes: int, host: int, kind: int = 2) -> Reply:
        if nbytes < 0 or self.sticky:
            return Reply(_INVALID)
        if nbytes == 0:
            return Reply()
        address = self.memory.allocate(nbytes)
        if host:  # what the host writes there is not seen
            self.shared.add(address)
            self.memory.mark_initialized(address, nbytes)
        self._made[address], self._kinds[address] = self.where, kind
        return Reply(0, (address,))

    cudaMalloc = cudaMallocAsync = cudaMallocPitch = _allocate
    cudaMallocHost = cudaHostAlloc = functools.partialmethod(_allocate, kind=1)
    cudaMallocManaged = functools.partialmethod(_allocate, kind=3)

    def cudaFree(self, address: int, call: str = "cudaFree") -> Reply:
        if address:
            allocation = self.memory.find(address)
            if allocation is None or allocation.address != address:
                raise self._invalid(call, "memory", address, 1, "Free each allocation once, at its first byte.")
            kind = self._kinds.get(address)
            what, right = _FREED_BY.get(kind, ("device memory", "It is freed by cudaFree."))
            if kind is None or (kind == 1) != (call == "cudaFreeHost"):
                raise InvalidCall(f"{call} of {what}", reason=right)
            if not self.sticky:
                self.memory.free(address)
                self.shared.discard(address)
        return Reply()

    cudaFreeAsync = cudaFree
    cudaFreeHost = functools.partialmethod(cudaFree, call="cudaFreeHost")

    def cudaHostRegister(self, address: int, nbytes: int) -> Reply:
        raise UnsupportedCall(
            "cudaHostRegister with cudaHostRegisterMapped is not supported", reason="Use cudaHostAlloc."
        )

    def cudaMemset(self, address: int, pitch: int, value: int, width: int, height: int) -> Reply:
        if width < 0 or height < 0:
            raise InvalidCall(
                f"cudaMemset of {width % 2**64:,} x {height % 2**64:,} bytes", reason="Is a size negative?"
            )
        self._device_range("cudaMemset", "the target", address, pitch, width, height)
        for row in range(height if width and not self.sticky else 0):
            self.memory.view(address + row * pitch, width)[:] = value & 255
            self.memory.mark_initialized(address + row * pitch, width)
        return Reply()

    cudaMemsetAsync = cudaMemset2D = cudaMemset2DAsync = cudaMemset

    def _copy(self, target: int, target_pitch: int, source: int, source_pitch: int, *size_and_kind: int) -> Reply:
        """Check a copy of rows that the process itself then makes."""
        width, height, kind = size_and_kind
        if not 0 <= kind < len(_KINDS):
            raise InvalidCall(f"cudaMemcpy of the kind {kind}, which does not exist", reason="See cudaMemcpyKind.")
        name = f"a copy cudaMemcpy{_KINDS[kind]}"
        if width < 0 or height < 0:
            raise InvalidCall(f"{name} of {width % 2**64:,} x {height % 2**64:,} bytes", reason="Is a size negative?")
        if not width or not height:
            return Reply()
        if height > 1 and min(target_pitch, source_pitch) < width:
            raise InvalidCall(
                f"{name} of rows of {width:,} bytes with a pitch of {min(target_pitch, source_pitch):,}",
                reason="The pitch is the bytes from one row to the next: at least the width.",
            )
        sides = (("target", target, target_pitch, kind in (1, 3)), ("source", source, source_pitch, kind in (2, 3)))
        for side, address, pitch, should in sides:
            if not address:
                raise InvalidCall(f"{name} with a null {side}", reason="Has its memory been allocated?")
            is_there = self._is_device(address)
            if should or is_there:
                if not should and kind != 4 and not self._is_shared(address):
                    raise InvalidCall(
                        f"{name}, but the {side} {address:#x} is {self._describe(address)}",
                        reason=f"The {side} of such a copy is host memory: is the direction right?",
                    )
                if not is_there:
                    raise InvalidCall(
                        f"{name}, but the {side} {address:#x} is host memory",
                        reason=f"The {side} of such a copy is device memory: is the direction right?",
                    )
                self._device_range(name, f"the {side}", address, pitch, width, height)
        if self._is_device(target):
            for row in range(height):
                self._mark(target + row * target_pitch, source + row * source_pitch, width)
        return Reply()

    cudaMemcpy = cudaMemcpyAsync = cudaMemcpyPeer = cudaMemcpy2D = cudaMemcpy2DAsync = _copy
    cudaMemcpyToSymbol = cudaMemcpyFromSymbol = _copy

    def _mark(self, target: int, source: int, width: int) -> None:
        """Record that bytes of the target were written; copied from the device, those that were written there."""
        start, memory = source - ORIGIN, self.memory
        from_device = memory.find(source) if self._is_device(source) else None
        if from_device is None or from_device.complete:
            memory.mark_initialized(target, width)
        elif not getattr(memory.find(target), "complete", True):
            memory.written[1][target - ORIGIN : target - ORIGIN + width] = memory.written[1][start : start + width]

    def _is_device(self, address: int) -> bool:
        return ORIGIN <= address < ORIGIN + self.memory.size

    def _is_shared(self, address: int) -> bool:
        allocation = self.memory.find(address)
        return allocation is not None and allocation.address in self.shared

    def _device_range(self, call: str, what: str, address: int, pitch: int, width: int, height: int) -> None:
        nbytes = (height - 1) * pitch + width
        if nbytes <= 0:
            return
        allocation = self.memory.find(address)
        if allocation is None:
            raise self._invalid(call, what, address, nbytes, "It must be what cudaMalloc has returned.")
        if address + nbytes > allocation.end:
            over = address + nbytes - allocation.end
            raise InvalidCall(
                f"{call}: {what} has {nbytes:,} bytes, {over:,} more than are left in {self._describe(address)}",
                reason="Is the size in bytes, not in elements? Is it that of the allocation?",
            )

    def _invalid(self, call: str, what: str, address: int, nbytes: int, reason: str) -> InvalidCall:
        freed = self.memory.find_freed(address) if self._is_device(address) else None
        if freed is not None:
            return InvalidCall(f"{call}: {what} at {address:#x} has been freed ({freed.nbytes:,} bytes)", reason=reason)
        return InvalidCall(f"{call}: {what} at {address:#x} is {self._describe(address)}", reason=reason)

    def _describe(self, address: int) -> str:
        if not self._is_device(address):
            return "host memory" if address else "a null pointer"
        allocation = self.memory.find(address)
        if allocation is None:
            return "no allocation of the device"
        offset = f"byte {address - allocation.address:,} of " if address != allocation.address else ""
        file, line = self.program.place(self._made.get(allocation.address, 0))
        made = f", allocated at {Path(file).name}:{line}" if file else ""
        return f"{offset}{allocation.nbytes:,} bytes of device memory{made}"

    def cudaMemGetInfo(self) -> Reply:
        return Reply(0, (self.memory.memory_bytes - self.memory.used_bytes, self.memory.memory_bytes))

    def cudaPointerGetAttributes(self, address: int) -> Reply:
        allocation = self.memory.find(address)
        return Reply(0, (0 if allocation is None else self._kinds.get(allocation.address, 2),))

    def touched(self, address: int, callers: tuple[int, ...]) -> Reply:
        """Note that the host's code has read or written memory that only the device can reach; return the allocation
        if a library did, which gets it and may write all of it. `callers`: places in the code, innermost first."""
        allocation = self.memory.find(address)
        if allocation is not None and self.program.in_library(callers):
            self.shared.add(allocation.address)
            self.memory.mark_initialized(allocation.address, allocation.nbytes)
            return Reply(0, (allocation.address, allocation.nbytes))
        freed = "" if allocation or not self.memory.find_freed(address) else ", which has been freed"
        self._failed(
            InvalidCall(
                f"host code reads or writes {address:#x}, {self._describe(address)}{freed}",
                reason="The host cannot reach it: copy it by cudaMemcpy, or allocate it by cudaMallocManaged.",
            )
        )
        return Reply()

    def tensor_map(self, numbers: tuple[int, ...], axes: tuple[int, ...]) -> Reply:
        """Return the bytes of a tensor map. `axes`: size, stride, box and step of each."""
        kind, rank, address, *modes = numbers
        sizes, strides, box, steps = (axes[n::4] for n in range(4))
        try:
            return Reply(text=encode_tiled(kind, rank, address, sizes, strides[:-1], box, steps, *modes))
        except ValueError as error:
            raise InvalidCall(f"cuTensorMapEncodeTiled: {error}") from None

    # -- variables of the device -----------------------------------------------------------------------------

    def variable(self, address: int, unit: int, number: int) -> Reply:
        self.variables[address] = unit, number
        return Reply()

    def cudaGetSymbolAddress(self, symbol: int, offset: int = 0, count: int = 0) -> Reply:
        known = self.variables.get(symbol)
        if known is None:
            error = InvalidCall("a symbol that is no variable of the device", reason="Pass the variable itself.")
            error.code = _SYMBOL
            raise error
        unit = self.program.units[known[0]]
        address = self.device.variable_address(unit.program, unit.variables[known[1]])
        allocation = self.memory.find(address)
        assert allocation is not None
        if offset < 0 or offset + count > allocation.nbytes:
            raise InvalidCall(
                f"a copy of {count:,} bytes at byte {offset:,} of variable {allocation.name}, which has "
                f"{allocation.nbytes:,}",
                reason="Is the size in bytes that of the variable?",
            )
        return Reply(0, (address, allocation.nbytes))

    cudaGetSymbolSize = cudaGetSymbolAddress

    # -- kernels ---------------------------------------------------------------------------------------------

    def _kernel(self, address: int) -> Kernel:
        kernel = self.program.kernels.get(address)
        if kernel is None:
            error = InvalidCall(f"{address:#x} is the address of no kernel", reason="Pass a __global__ function.")
            error.code = 98  # cudaErrorInvalidDeviceFunction
            raise error
        return kernel

    def parameters(self, address: int) -> Reply:
        sizes = [param.size for param in self._kernel(address).entry.params]
        return Reply(0, (), struct.pack(f"{len(sizes)}q", *sizes))

    def called_as_function(self, address: int) -> Reply:
        self._failed(InvalidCall(f"kernel {self._kernel(address).name} is called like a function", reason="Launch it."))
        return Reply()

    def _launch(self, name: str, numbers: tuple[int, ...], more: bytes) -> Reply:
        address, *sizes, shared_bytes = numbers
        kernel = self._kernel(address)
        grid, block, cluster = (tuple(sizes[n : n + 3]) for n in (0, 3, 6))
        params, at = [], 0
        for param in kernel.entry.params:
            params.append(more[at : at + param.size])
            at += param.size
        self._name_arrays(kernel, params)
        if self.sticky:
            return Reply(self.sticky)
        together = {"cooperative": name == "launch_cooperative", "cluster": cluster if any(cluster) else None}
        options = simulator.Options(**together, counters=True, wide_clusters=kernel.wide_clusters)  # type: ignore[arg-type]
        bound = BoundKernel(kernel.entry, params, kernel.assemble)
        launch = PreparedLaunch(kernel.name, bound, self.device, {}, lambda: None, (), "CUDA C++ program")
        how = f"cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, {shared_bytes})"
        try:
            with launching, profiling.launched_from(self._place):
                check_dynamic_bytes(shared_bytes, kernel.entry.shared_bytes, kernel.dynamic_bytes, how)
                record = launch.run(grid, block, shared_bytes, options)  # type: ignore[arg-type]
        except simulator.InvalidLaunch:
            return Reply(_CONFIGURATION)
        except simulator.SimulatorError as error:
            if not error.in_report:  # it could not even be read
                error.kernel, error.sources = kernel.name, kernel.entry.program.sources
                profiling.failed(error)
            self.sticky = _code(error)
            return Reply(0)  # as on a GPU, the next call that waits tells
        profiling.record(record)
        return Reply()

    def _name_arrays(self, kernel: Kernel, params: list[bytes]) -> None:
        names: dict[int, list[str]] = {}
        for parameter, data in zip(kernel.parameters, params, strict=False):
            if not parameter.pointer or len(data) != 8:
                continue
            address = int.from_bytes(data, "little")
            found: Allocation | None = self.memory.find(address) or self.memory.find_freed(address)
            if found is not None:
                known = names.setdefault(found.address, [])
                if not known:
                    found.item = None if parameter.dtype is None else parameter.dtype.itemsize
                    found.origin = address - found.address
                known.append(parameter.name)
                found.name = ", ".join(dict.fromkeys(known))

    def cudaFuncSetAttribute(self, address: int, attribute: int, value: int) -> Reply:
        most = self.card.block_shared_bytes
        if attribute == 8 and value > most:  # cudaFuncAttributeMaxDynamicSharedMemorySize
            raise InvalidCall(
                f"{value:,} bytes of dynamic shared memory for a block; the {self.card.name} has {most:,}",
                reason="Ask cudaDevAttrMaxSharedMemoryPerBlockOptin.",
            )
        if attribute == 8:
            self._kernel(address).dynamic_bytes = value
        if attribute == 14:  # cudaFuncAttributeNonPortableClusterSizeAllowed
            self._kernel(address).wide_clusters = bool(value)
        return Reply()

    def _resources(self, address: int) -> resources.Resources:
        arch, _ = resources.architecture(self.card)
        return resources.reported(self._kernel(address).assemble(arch), arch)

    def cudaFuncGetAttributes(self, address: int) -> Reply:
        found = self._resources(address)
        return Reply(0, (found.registers, found.shared_bytes, resources.max_threads(found), found.local_bytes))

    def occupancy(self, address: int, threads: int, shared_bytes: int) -> Reply:
        if not 0 < threads <= occupancy.MAX_THREADS or shared_bytes < 0:
            raise InvalidCall(
                f"occupancy of blocks of {threads:,} threads with {shared_bytes:,} bytes of shared memory"
            )
        found = self._resources(address)
        blocks = occupancy.theoretical(
            self.card,
            threads,
            registers=found.registers,
            shared_bytes=found.shared_bytes + shared_bytes,
            barriers=found.barriers,
        ).blocks
        return Reply(0, (blocks,))

    # -- the device and its errors -----------------------------------------------------------------------------

    def cudaSetDevice(self, number: int) -> Reply:
        return Reply(_DEVICE)

    def cudaGetDeviceProperties(self, number: int) -> Reply:
        name = f"{self.card.full_name}, simulated by Warp Lab"
        clocks = (self._attribute("ClockRate") or 0, self._attribute("MemoryClockRate") or 0)  # 0: not known
        return Reply(_DEVICE if number else 0, (self.memory.memory_bytes, *clocks), name.encode())

    def cudaDeviceGetAttribute(self, attribute: int, number: int) -> Reply:
        if number:
            return Reply(_DEVICE)
        name = _attributes().get(attribute, "")
        value = self._attribute(name)
        if value is None:
            raise InvalidCall(f"cudaDeviceGetAttribute: {name or attribute} is not known of the {self.card.name}")
        return Reply(0, (value,))

    def _attribute(self, name: str) -> int | None:
        card = self.card
        known = {
            "MaxThreadsPerBlock": occupancy.MAX_THREADS,
            **dict.fromkeys(("MaxBlockDimX", "MaxBlockDimY"), occupancy.MAX_THREADS),
            "MaxBlockDimZ": 64,
            "MaxGridDimX": 2**31 - 1,
            **dict.fromkeys(("MaxGridDimY", "MaxGridDimZ"), 65535),
            "MaxSharedMemoryPerBlock": 48 << 10,
            "MaxSharedMemoryPerBlockOptin": card.block_shared_bytes,
            "MaxSharedMemoryPerMultiprocessor": card.shared_bytes,
            "ReservedSharedMemoryPerBlock": card.reserved_shared_bytes,
            "TotalConstantMemory": 64 << 10,
            "WarpSize": occupancy.WARP_SIZE,
            **dict.fromkeys(("MaxRegistersPerBlock", "MaxRegistersPerMultiprocessor"), occupancy.REGISTERS),
            "MaxThreadsPerMultiProcessor": card.max_threads,
            "MaxBlocksPerMultiprocessor": card.max_blocks,
            "MultiProcessorCount": card.sms,
            "L2CacheSize": card.l2_bytes,
            "GlobalMemoryBusWidth": card.memory_bits,
            "ClockRate": card.clock_mhz * 1000,
            "MemoryClockRate": None if card.memory_mhz is None else int(card.memory_mhz * 1000),
            "ComputeCapabilityMajor": card.compute_capability[0],
            "ComputeCapabilityMinor": card.compute_capability[1],
            **dict.fromkeys(("UnifiedAddressing", "ManagedMemory", "CanMapHostMemory", "ConcurrentKernels"), 1),
            **dict.fromkeys(("CooperativeLaunch", "ConcurrentManagedAccess", "StreamPrioritiesSupported"), 1),
            "MemoryPoolsSupported": 1,
            **dict.fromkeys(("Integrated", "KernelExecTimeout", "ComputeMode", "EccEnabled"), 0),
        }
        return known.get(name)

    def cudaGetLastError(self, latest: int) -> Reply:
        return Reply(0, (self.sticky,))

    def cudaGetErrorName(self, error: int) -> Reply:
        return Reply(0, (), _errors().get(error, "unrecognized error code").encode())

    def cudaGetErrorString(self, error: int) -> Reply:
        return Reply(0, (), _TEXTS.get(error, _errors().get(error, "unrecognized error code")).encode())


def _code(error: simulator.SimulatorError) -> int:
    """Return the cudaError_t that a kernel with this defect is given."""
    if isinstance(error, simulator.UnsupportedInstruction):
        return _UNSUPPORTED
    if isinstance(error, simulator.AssertFailed):
        return _ASSERT
    if isinstance(error, simulator.MisalignedAddress):
        return _MISALIGNED
    return _ADDRESS if isinstance(error, simulator.IllegalAddress) else _LAUNCH


@functools.cache
def _errors() -> dict[int, str]:
    return _enumeration("cudaError[A-Z]\\w*|cudaSuccess")


@functools.cache
def _attributes() -> dict[int, str]:
    return {n: name.removeprefix("cudaDevAttr") for n, name in _enumeration("cudaDevAttr\\w+").items()}


def _enumeration(pattern: str) -> dict[int, str]:
    """Return the names of an enumeration in CUDA's headers, by number."""
    for folder in include_folders():
        file = Path(folder, "driver_types.h")
        if file.exists():
            found = re.findall(rf"^\s+({pattern})\s*=\s*(\d+)", file.read_text(encoding="utf-8"), re.M)
            return {int(number): name for name, number in found}
    return {}
