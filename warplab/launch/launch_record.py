"""`LaunchRecord`: what the simulator counted, and what only the launch itself knows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warplab.compile.ptx_assembler import Assembled
from warplab.simulator.count.counters import LaunchProfile

Assemble = Callable[[int], Assembled]  # to machine code for an architecture


@dataclass
class LaunchRecord(LaunchProfile):
    """One launch as a profile records it: the simulator's counters, the time on a GPU, and the way back to the code.

    `assemble`: compiles the kernel again (`warplab.launch.resources`); None if unknown. `max_registers`: per thread,
    where the kernel was compiled with a limit. `machine`: what was found out about its machine code, by architecture
    (`warplab.estimating.machine_counts`). `gpu_seconds`, `gpu_name`: set only where the launch ran on that GPU and was
    timed with events.
    """

    assemble: Assemble | None = field(default=None, repr=False, compare=False)
    max_registers: int | None = None
    machine: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)
    gpu_seconds: float | None = None
    gpu_name: str | None = None

    @classmethod
    def of(cls, profile: LaunchProfile, assemble: Assemble | None = None, **known: Any) -> "LaunchRecord":
        """Return the record of a launch with this profile, which may be a record already. `known`: further fields."""
        return profile if isinstance(profile, cls) else cls(**vars(profile), assemble=assemble, **known)
