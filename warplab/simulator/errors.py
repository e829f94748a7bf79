"""What the simulator reports: one class per kind of mistake, with a message that a learner can act on."""

import struct
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

Index3 = tuple[int, int, int]


class SimulatorError(RuntimeError):
    """A kernel, or its launch, did something that a GPU does not allow.

    `kernel`, `block`, `thread`, `file`, `line`: where it happened (None where unknown).
    `address`, `array`, `index`: the address, the name of the array, and the number of the element, counted without
    dimensions in elements of the array or, if these are unknown, of the access.
    `reason`: the likely cause.
    `profile`: the `LaunchProfile`, trace and counters up to the error, if the launch was counted, else None.
    `sources`: the texts of the kernel's files, by name.
    `str(error)` is the whole message.
    """

    profile: Any = None
    sources: Mapping[str, str] = MappingProxyType({})
    in_report = False  # for whoever catches it last
    on_device: int | None = None  # where several devices run at the same time

    def __init__(
        self,
        what: str,
        *,
        reason: str = "",
        kernel: str | None = None,
        block: Index3 | None = None,
        thread: Index3 | None = None,
        file: str | None = None,
        line: int | None = None,
        source: str | None = None,
        address: int | None = None,
        array: str | None = None,
        index: int | None = None,
    ) -> None:
        self.what, self.reason = what, reason
        self.kernel, self.block, self.thread = kernel, block, thread
        self.file, self.line, self.source = file, line, source
        self.address, self.array, self.index = address, array, index
        super().__init__(self.message())

    def message(self) -> str:
        parts = [self.what]
        if self.kernel is not None:
            where = f"  in kernel {self.kernel}"
            if self.on_device is not None:
                where += f" on device {self.on_device}"
            if self.thread is not None:
                where += f", block {_index(self.block)}, thread {_index(self.thread)}"
            parts.append(where)
        if self.line:
            code = f": {self.source.strip()}" if self.source else ""
            parts.append(f"  at {self.file}, line {self.line}{code}")
        if self.reason:
            parts.append(f"  {self.reason}")
        return "\n".join(parts)


def _index(index: Index3 | None) -> str:
    return "?" if index is None else f"({index[0]}, {index[1]}, {index[2]})"


class IllegalAddress(SimulatorError):
    """A load, store or atomic outside every allocation (compute-sanitizer memcheck)."""


class HostPointer(IllegalAddress):
    """A kernel used an address in host memory."""


class PeerAccess(IllegalAddress):
    """A kernel used memory of a device that its own device cannot reach."""


class MisalignedAddress(SimulatorError):
    """An access whose address is not a multiple of its width."""


class UninitializedRead(SimulatorError):
    """A read of memory, or of the registers of a matrix fragment, that nothing wrote (compute-sanitizer initcheck)."""


class StaleTexel(SimulatorError):
    """A texture fetch or surface read of memory that the same launch has written, which is undefined."""


class UndefinedShuffle(UninitializedRead):
    """A result that depends on what a shuffle brings from a lane that does not take part, which is undefined."""


class DataRace(SimulatorError):
    """Two threads access the same memory, at least one writes, and nothing orders them (compute-sanitizer racecheck).

    `other_line`: line of the earlier access. `other_thread`: block and thread index of its thread, None for several.
    """

    def __init__(self, what: str, *, other_line: int, other_thread: tuple[Index3, Index3] | None, **where) -> None:
        self.other_line, self.other_thread = other_line, other_thread
        super().__init__(what, **where)


class DeviceRace(DataRace):
    """Threads of two devices access the same memory, at least one writes, and nothing orders them for both devices.

    `device`, `other_device`: their numbers. `other_kernel`, `other_file`: the kernel of the earlier access, and its
    file. `cause`: "no wait", "no fence before the flag", "no fence after the wait", "narrow fence", "narrow flag",
    "plain flag", "split word", "volatile data" or "no barrier"; `reason` says it in a sentence.
    """

    def __init__(
        self,
        what: str,
        *,
        cause: str,
        device: int,
        other_device: int,
        other_kernel: str,
        other_file: str | None,
        other_source: str | None,
        other_line: int,
        **where,
    ) -> None:
        self.cause, self.device, self.other_device, self.other_kernel = cause, device, other_device, other_kernel
        self.other_file, self.other_source, self.other_line = other_file, other_source, other_line
        super().__init__(what, other_line=other_line, **where)

    def message(self) -> str:
        code = f": {self.other_source.strip()}" if self.other_source else ""
        earlier = f"  device {self.other_device}: {self.other_file}, line {self.other_line}{code}"
        lines = super().message().split("\n")
        place = next((k for k, line in enumerate(lines) if line.startswith("  at ")), 0)
        if place:
            lines[place] = f"  device {self.device}: {lines[place].removeprefix('  at ')}"
        return "\n".join((*lines[: place + 1], earlier, *lines[place + 1 :]))


class DeviceDeadlock(SimulatorError):
    """Kernels of several devices wait for flags that none of them can set any more. `waiting`: who waits for what."""

    def __init__(self, what: str, *, waiting: "tuple[FlagWait, ...]", **where) -> None:
        self.waiting = waiting
        super().__init__(what, **where)

    def message(self) -> str:
        first, *rest = super().message().split("\n")
        return "\n".join((first, *(f"  {wait}" for wait in self.waiting), *rest[-1:]))


@dataclass(frozen=True)
class FlagWait:
    """A thread that waits for a flag: element `index` of `array`, which belongs to device `owner` and holds `value`.

    `array` and what follows from it are None where the loop looks at no memory.
    """

    device: int
    block: Index3
    thread: Index3
    kernel: str
    file: str | None
    line: int | None
    source: str | None
    array: str | None = None
    index: int | None = None
    owner: int | None = None
    value: int | None = None
    others: int = 0

    def __str__(self) -> str:
        who = f"device {self.device}: thread {_index(self.thread)} of block {_index(self.block)}"
        if self.others:
            who += f" (and {self.others:,} more)"
        if self.array is None:
            waits = "is in a loop that never ends and looks at no memory"
        else:
            owner = "" if self.owner is None else f" of device {self.owner}"
            waits = f"waits for element {self.index} of `{self.array}`{owner}, which is {self.value}"
        code = f": {self.source.strip()}" if self.source else ""
        return f"{who} {waits}, at {self.file}, line {self.line}{code}"


class MissingProxyFence(SimulatorError):
    """TMA or wgmma reads shared memory that an ordinary store wrote, without a fence.proxy.async in between.

    `other_line`: line of the store. `other_thread`: block and thread index of its thread.
    """

    def __init__(self, what: str, *, other_line: int, other_thread: tuple[Index3, Index3], **where) -> None:
        self.other_line, self.other_thread = other_line, other_thread
        super().__init__(what, **where)


class DivergentBarrier(SimulatorError):
    """A barrier that only some of the block's threads reach (compute-sanitizer synccheck)."""


class DivergentWarp(SimulatorError):
    """A warp-wide instruction whose mask names lanes that never reach it, or omits one that does."""


class UnorderedRegisters(SimulatorError):
    """Registers of a wgmma or tcgen05.ld that are accessed while it may be under way, or without a wgmma.fence."""


class UnorderedTensorMemory(SimulatorError):
    """Tensor memory that is accessed while a tcgen05 instruction may be under way there."""


class WrongDescriptor(SimulatorError):
    """A descriptor of tcgen05 or wgmma that is wrong, or does not fit the way its operand lies in shared memory."""


class AssertFailed(SimulatorError):
    """A device `assert` that fails. `expression`: what was asserted."""

    def __init__(self, what: str, *, expression: str, **where) -> None:
        self.expression = expression
        super().__init__(what, **where)


class InstructionLimit(SimulatorError):
    """The launch executed more instructions than its limits allow (see `standstill`).

    `one_path`: more than `Options.path_limit` on one path, which suggests an endless loop or a deadlock. Otherwise more
    than `instruction_limit` in all threads, which may just be a lot of work. `advice`: the end of `reason` if it names
    options that allow more.
    """

    one_path = False
    advice = ""

    def without_advice(self) -> str:
        """Return the message for those who cannot choose the options."""
        return str(self).removesuffix(f" {self.advice}") if self.advice else str(self)


class UnsupportedInstruction(SimulatorError):
    """The PTX contains an instruction that the simulator does not know, or is malformed."""


# What reading malformed PTX raises: an operand is missing or of another kind, or text is not a number.
MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    StopIteration,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)


class refusing:
    """Turns errors that malformed PTX causes inside the block into an UnsupportedInstruction that says `what`."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, traceback) -> None:
        if isinstance(error, MALFORMED) and not isinstance(error, SimulatorError):
            raise UnsupportedInstruction(f"{self.what} ({type(error).__name__}: {str(error)[:200]})") from error


class InvalidLaunch(SimulatorError, ValueError):
    """Grid, block, arguments or shared memory that no GPU would accept."""


class WrongArgument(SimulatorError):
    """An argument that does not fit the kernel's parameter, whose bytes a GPU would take all the same."""


class SimulatorFailure(RuntimeError):
    """The simulator itself failed. That is the course's fault, and so no `SimulatorError`. Raised from the cause."""

    def __init__(self, kernel: str, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
        super().__init__(
            f"the course's simulator failed on {kernel}: {type(error).__name__}: {str(error)[:200]}{place}\n"
            "  This is a bug in Warp Lab, whatever the kernel does. Please report it together with the kernel."
        )
