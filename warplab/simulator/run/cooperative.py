"""Cooperative launches: all thread blocks run together, so that they can wait for one another (`grid.sync()`).

Cooperative groups of CUDA C++ find a barrier for the grid at an address that two special registers hold
(%envreg1 and %envreg2; 0 in other launches). Numba calls a function for it, cudaCGSynchronize, and makes every launch
of a kernel that does so a cooperative one.
"""

from warplab.simulator.errors import InvalidLaunch
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.translate.basic_blocks import sources

MOST_THREADS = 132 * 2048  # that an H100 SXM holds at once
_WORKSPACE_BYTES = 64
_REGISTERS = frozenset(("%envreg1", "%envreg2"))
HINT = (
    "Blocks can wait for one another (grid.sync()) only in a cooperative launch: cp.RawKernel(..., "
    "enable_cooperative_groups=True)."
)


def is_wanted(translation, asked: bool, blocks: int, threads: int) -> bool:
    """Return whether the blocks of a launch must run together. `asked`: it says so. InvalidLaunch if too many."""
    if not asked and not any(
        block.last is not None and "grid" in block.last.modifiers and block.last.opcode == "barrier"
        for block in translation.blocks
    ):
        return False
    if blocks * threads > MOST_THREADS:
        raise InvalidLaunch(
            f"{blocks:,} blocks of {threads:,} threads in a cooperative launch: all must run at once, and an H100 "
            f"holds {MOST_THREADS:,} threads",
            reason="Use fewer blocks, each of which does more work in a loop.",
        )
    return True


def uses_registers(translation) -> bool:
    """Return whether the kernel looks for the grid's barrier."""
    return any(not _REGISTERS.isdisjoint(sources(i)) for block in translation.blocks for i in block.body)


def workspace(memory: DeviceMemory) -> int:
    """Return the address of new memory for the grid's barrier."""
    address = memory.allocate(_WORKSPACE_BYTES, "workspace of the grid")
    memory.mark_initialized(address, _WORKSPACE_BYTES)
    return address
