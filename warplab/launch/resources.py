"""What a kernel's machine code needs: registers, shared and local memory, spills. Needs no GPU.

    resources.of(kernel, a, b, card="A100")       # a kernel of either language; arguments decide a Numba kernel's types
    resources.of(profile[0])                      # a launch; its report then has rows for its resources
    resources.occupancy(profile[0], "H100")       # how many of its blocks fit on an SM of the card

NVIDIA's assembler translates the kernel to machine code and reports on it. CUDA C++ goes through the assembler in
NVRTC, as in CuPy, Numba's kernels through ptxas, whose code is the one that runs; nvJitLink stands in where there is
none, and may differ by some registers.
"""

import re
from dataclasses import dataclass, replace

from warplab.compile.ptx_assembler import Assembled
from warplab.hardware import occupancy as _occupancy
from warplab.hardware.cards import Card, card
from warplab.launch.dimensions import dimensions
from warplab.launch.kernel_source import NumbaSource, source_of
from warplab.launch.launch_record import Assemble, LaunchRecord
from warplab.launch.profiling import RecordedLaunches

OLDEST_ARCH = 75  # the oldest that CUDA 13 compiles for
RESERVED_SHARED_BYTES = 1024  # per block for the system, which nvJitLink includes from 9.0 on


@dataclass(frozen=True)
class Resources:
    """What one kernel needs in machine code for compute capability `arch` (90 for 9.0); sizes in bytes.

    `registers`: per thread. `shared_bytes`: static shared memory per block. `local_bytes`: per thread, for arrays and
    for registers that were spilled; `spill_bytes`: stored and loaded for the latter, each instruction of the code
    counted once. `barriers`: of `__syncthreads()` and named ones, per block.
    `note`: what to know about the numbers, "" for nothing.
    """

    kernel: str
    arch: int
    registers: int
    shared_bytes: int
    local_bytes: int
    spill_bytes: int
    barriers: int
    note: str = ""

    def __str__(self) -> str:
        text = (
            f"{self.kernel} for sm_{self.arch}: {self.registers} registers per thread, "
            f"{self.shared_bytes:,} bytes of static shared memory per block, "
            f"{self.local_bytes:,} bytes of local memory per thread, {self.spill_bytes:,} bytes of spills"
        )
        return f"{text} ({self.note})" if self.note else text


def of(kernel, *args, card: str | Card = "H100") -> Resources:
    """Return what `kernel` needs on a card.

    `kernel`: whatever `warplab.simulate` takes, or a launch of a profile. `args`: as for a launch; a Numba kernel needs
    them for their types, others do not. The numbers of a launch go into its `static` and so into its report.
    Raises TypeError for what is no kernel, ValueError for an unknown card or a launch that cannot be compiled again,
    and what the compilers raise.
    """
    arch, note = architecture(card)
    name, assemble = assembler_of(kernel, *args)
    found = replace(reported(assemble(arch), arch), kernel=name, note=note)
    if isinstance(kernel, LaunchRecord | RecordedLaunches):
        static = {k: getattr(found, k) for k in ("arch", "registers", "local_bytes", "spill_bytes")}
        _one_launch(kernel).static.update(static)
    return found


def assembler_of(kernel, *args) -> tuple[str, Assemble]:
    """Return a kernel's name and what translates it to machine code; arguments and errors as for `of`."""
    if not isinstance(kernel, LaunchRecord | RecordedLaunches):
        source = source_of(kernel)
        return source.name, source.assembler(args)
    launch = _one_launch(kernel)
    if launch.assemble is None:
        raise ValueError(f"this launch of {launch.kernel} does not know its source; give the kernel itself")
    return launch.kernel, launch.assemble


def architecture(name: str | Card) -> tuple[int, str]:
    """Return what a card's kernels are compiled for (90 for 9.0), and what to know about that, "" for nothing."""
    device = card(name)
    major, minor = device.compute_capability
    arch = 10 * major + minor
    if arch >= OLDEST_ARCH:
        return arch, ""
    return OLDEST_ARCH, (
        f"compiled for sm_{OLDEST_ARCH}, the oldest that CUDA 13 knows; "
        f"for the {device.name}, sm_{arch}, another compiler may use more or fewer"
    )


def of_types(source: NumbaSource, signature: tuple, arch: int) -> Resources:
    """Return what a Numba kernel needs for arguments of the Numba types `signature`; `arch` as in `Resources`."""
    return replace(reported(source.assemble(arch, signature), arch), kernel=source.name)


def max_threads(found: Resources, launch_bounds: int | tuple[int, ...] | None = None) -> int:
    """Return the threads of the largest block that an SM has registers for and that `launch_bounds` allows."""
    bound = launch_bounds[0] if isinstance(launch_bounds, tuple) else launch_bounds or _occupancy.MAX_THREADS
    sizes = range(_occupancy.MAX_THREADS, 0, -_occupancy.WARP_SIZE)
    fits = next(n for n in sizes if _occupancy.theoretical("H100", n, registers=found.registers).blocks)
    return min(bound, fits)


def occupancy(
    kernel, card: str | Card, *args, block: int | tuple[int, ...] | None = None, shared_bytes: int | None = None
) -> _occupancy.Occupancy:
    """Return the theoretical occupancy of a kernel's blocks on a card; its `str()` is a sentence.

    `kernel`, `args`: as for `of`. `block` and `shared_bytes` (dynamic shared memory, bytes) default to those of the
    launch where `kernel` is one; a kernel needs `block`. Raises what `of` raises.
    """
    found = of(kernel, *args, card=card)
    total = found.shared_bytes + (shared_bytes or 0)
    if isinstance(kernel, LaunchRecord | RecordedLaunches):
        launch = _one_launch(kernel)
        block = launch.block if block is None else block
        if shared_bytes is None:
            total = launch.static["shared_bytes"] or 0
    if block is None:
        raise ValueError("block is missing; give it, as occupancy depends on the number of threads per block")
    x, y, z = dimensions(block, "block")
    return _occupancy.theoretical(
        card, x * y * z, registers=found.registers, shared_bytes=total, barriers=found.barriers
    )


def _one_launch(profile: LaunchRecord | RecordedLaunches) -> LaunchRecord:
    if isinstance(profile, LaunchRecord):
        return profile
    if len(profile) != 1:
        raise ValueError(f"the profile has {len(profile)} launches; give one of them, such as profile[0]")
    return profile[0]


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"Function properties for (\S+)\n\D*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes")
_LINKED = r"Function properties for '{}':\n.*"  # what follows is in this form
_USED = re.compile(r"[Uu]sed (\d+) registers(?:, used (\d+) barriers)?(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_CUMULATIVE_STACK = re.compile(r"(\d+) bytes cumulative stack size|(\d+) stack")


def reported(assembled: Assembled, arch: int) -> Resources:
    """Return what the assembler's report says about a kernel in machine code.

    The assembler writes lines on each kernel. nvJitLink's linker adds one, which alone counts what the functions need
    that the kernel calls, and shared variables that other modules may see, such as Numba's.
    """
    log, entry, _ = assembled
    parts = _ENTRY.split(log)  # text before, then name and report of each kernel
    report = dict(zip(parts[1::2], parts[2::2], strict=True)).get(entry, "")
    stacks = {name: tuple(map(int, numbers)) for name, *numbers in _STACK.findall(report)}
    linked = re.search(_LINKED.format(re.escape(entry)), log)
    used = _USED.search(linked[0] if linked else report)
    if used is None or entry not in stacks:
        raise RuntimeError(f"the assembler's report on kernel {entry} could not be read:\n{log}")
    stack, spill_stores, spill_loads = stacks[entry]
    shared, cumulative = _SHARED.search(used[3]), _CUMULATIVE_STACK.search(used[3])
    shared_bytes = int(shared[1]) if shared else 0
    if linked and arch >= 90 and shared_bytes:
        shared_bytes -= RESERVED_SHARED_BYTES
    return Resources(
        entry,
        arch,
        registers=int(used[1]),
        shared_bytes=shared_bytes,
        local_bytes=max(stack, int(cumulative[1] or cumulative[2]) if cumulative else 0),
        spill_bytes=spill_stores + spill_loads,
        barriers=int(used[2] or 0),
    )
