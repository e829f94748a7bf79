"""What the machine code of a kernel needs: registers, shared and local memory, spills; no GPU needed.

    resources.of(kernel, a, b, card="A100")       # a kernel of either language; arguments decide a Numba kernel's types
    resources.of(profile[0])                      # a launch; its report then has rows for them
    resources.occupancy(profile[0], "H100")       # how many of its blocks fit on an SM of the card

NVIDIA's assembler translates the kernel to machine code and reports on it: the one in NVRTC for CUDA C++, as CuPy uses
it, the one in nvJitLink for Numba's kernels, as Numba does. They may differ by some registers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from warplab.hardware import occupancy as _occupancy
from warplab.hardware.cards import Card, card
from warplab.launch.dimensions import dimensions
from warplab.launch.kernel_source import PythonSource, source_of
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profiling import Launches

OLDEST_ARCH = 75  # that CUDA 13 compiles for
RESERVED_SHARED_BYTES = 1024  # of each block for the system, which nvJitLink counts in from 9.0 on


@dataclass(frozen=True)
class Resources:
    """Of one kernel in machine code for compute capability `arch` (90 for 9.0); sizes in bytes.

    `registers`: of a thread. `shared_bytes`: static shared memory of a block. `local_bytes`: of a thread, for arrays
    and for registers that did not fit; `spill_bytes`: written and read for the latter, as the instructions stand in
    the code, each counted once. `barriers`: of `__syncthreads()` and named ones, of a block.
    `note`: what to know of them, "" for nothing.
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
            f"{self.kernel} for sm_{self.arch}: {self.registers} registers a thread, "
            f"{self.shared_bytes:,} bytes of static shared memory a block, {self.local_bytes:,} bytes of local memory "
            f"a thread, {self.spill_bytes:,} bytes of spills"
        )
        return f"{text} ({self.note})" if self.note else text


def of(kernel, *args, card: str | Card = "H100") -> Resources:
    """What `kernel` needs on a card.

    `kernel`: whatever `warplab.simulate` takes, or a launch of a profile. `args`: as for a launch; a Numba kernel needs
    them for their types, others do not. A launch gets the numbers into its `static` and so into its report.
    Raises TypeError for what is no kernel, ValueError for an unknown card or a launch that cannot be compiled again,
    and what the compilers raise.
    """
    device, note = _card(card)
    if isinstance(kernel, LaunchRecord | Launches):
        launch = _launch(kernel)
        name, (log, entry) = launch.kernel, launch.assemble(_arch(device))
    else:
        source = source_of(kernel)
        signature = source.signature_of(args) if isinstance(source, PythonSource) else None
        name, (log, entry) = source.name, source.assemble(_arch(device), signature)
    found = replace(_read(log, entry, _arch(device)), kernel=name, note=note)
    if isinstance(kernel, LaunchRecord | Launches):
        launch.static.update({k: getattr(found, k) for k in ("arch", "registers", "local_bytes", "spill_bytes")})
    return found


def of_types(source: PythonSource, signature: tuple, arch: int) -> Resources:
    """What a Numba kernel needs for arguments of the Numba types `signature`, on capability `arch` (90 for 9.0)."""
    log, entry = source.assemble(arch, signature)
    return replace(_read(log, entry, arch), kernel=source.name)


def max_threads(found: Resources, launch_bounds: int | tuple[int, ...] | None = None) -> int:
    """Threads of the largest block of a kernel that a multiprocessor has registers for, and `launch_bounds` allows."""
    bound = launch_bounds[0] if isinstance(launch_bounds, tuple) else launch_bounds or _occupancy.MAX_THREADS
    sizes = range(_occupancy.MAX_THREADS, 0, -_occupancy.WARP_SIZE)
    fits = next(n for n in sizes if _occupancy.theoretical("H100", n, registers=found.registers).blocks)
    return min(bound, fits)


def occupancy(
    kernel, card: str | Card, *args, block: int | tuple[int, ...] | None = None, shared_bytes: int | None = None
) -> _occupancy.Occupancy:
    """Theoretical occupancy of a kernel's blocks on a card; `str()` of it is a sentence.

    `kernel`, `args`: as for `of`. `block` and `shared_bytes` (dynamic shared memory, bytes) are those of the launch
    where `kernel` is one; for a kernel `block` must be given. Raises what `of` raises.
    """
    found = of(kernel, *args, card=card)
    if isinstance(kernel, LaunchRecord | Launches):
        launch = _launch(kernel)
        block = launch.block if block is None else block
        total = launch.static["shared_bytes"] if shared_bytes is None else found.shared_bytes + shared_bytes
    else:
        if block is None:
            raise ValueError("block is missing: occupancy depends on the number of threads of a block")
        total = found.shared_bytes + (shared_bytes or 0)
    x, y, z = dimensions(block, "block")
    return _occupancy.theoretical(
        card, x * y * z, registers=found.registers, shared_bytes=total, barriers=found.barriers
    )


def _card(name: str | Card) -> tuple[Card, str]:
    device = card(name)
    major, minor = device.compute_capability
    if 10 * major + minor >= OLDEST_ARCH:
        return device, ""
    return device, (
        f"compiled for sm_{OLDEST_ARCH}, the oldest that CUDA 13 knows; "
        f"for the {device.name}, sm_{major}{minor}, another compiler may use more or fewer"
    )


def _arch(device: Card) -> int:
    major, minor = device.compute_capability
    return max(OLDEST_ARCH, 10 * major + minor)


def _launch(profile: LaunchRecord | Launches) -> LaunchRecord:
    if isinstance(profile, Launches):
        if len(profile) != 1:
            raise ValueError(f"the profile has {len(profile)} launches; give one of them, such as profile[0]")
        profile = profile[0]
    if profile.assemble is None:
        raise ValueError(f"this launch of {profile.kernel} does not know its source; give the kernel itself")
    return profile


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"Function properties for (\S+)\n\D*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes")
_LINKED = r"Function properties for '{}':\n.*"  # what follows is in this form
_USED = re.compile(r"[Uu]sed (\d+) registers(?:, used (\d+) barriers)?(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_CUMULATIVE_STACK = re.compile(r"(\d+) bytes cumulative stack size|(\d+) stack")


def _read(log: str, entry: str, arch: int) -> Resources:
    """What an assembler's report says of a kernel.

    Of each kernel there are lines by the assembler; where nvJitLink made it, also one by its linker, which alone counts
    what functions that the kernel calls need, and shared variables that other modules may see, such as Numba's.
    """
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
