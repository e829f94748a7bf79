"""What a launch may ask for: the size of its grid and blocks, shared memory, parameters, blocks that run together.

In cooperative launches blocks can wait for one another (`grid.sync()`). Cooperative groups of CUDA C++ find a barrier
for the grid at an address that two special registers hold (%envreg1 and %envreg2; 0 in other launches). Numba calls a
function for it, cudaCGSynchronize, and makes every launch of a kernel that does so a cooperative one.
"""

import math
from collections.abc import Sequence

from warplab.simulator.errors import Index3, InvalidLaunch
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.ptx.program import Entry
from warplab.simulator.translate.basic_blocks import sources

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_SHARED_BYTES = 227 * 1024  # compute capability 9.0
MAX_LOCAL_BYTES = 512 * 1024  # per thread
MAX_CLUSTER = 8  # blocks, on every GPU that has clusters
WIDE_CLUSTER = 16  # on those of today, if asked


def check_launch(entry: Entry, grid, block, params: Sequence[bytes], shared_bytes: int) -> tuple[Index3, Index3]:
    """Return grid and block with three dimensions each. Raises InvalidLaunch for a launch that no GPU would accept."""
    grid, block = check_shape(grid, block)
    threads = math.prod(block)
    most = MAX_THREADS if entry.max_threads is None else math.prod(entry.max_threads)
    if threads > most:
        raise InvalidLaunch(
            f"{threads:,} threads per block; the kernel was compiled for at most {most:,} (__launch_bounds__)"
        )
    if shared_bytes < 0 or entry.shared_bytes + shared_bytes > MAX_SHARED_BYTES:
        raise InvalidLaunch(
            f"{entry.shared_bytes + shared_bytes:,} bytes of shared memory per block; at most {MAX_SHARED_BYTES:,}"
        )
    if len(params) != len(entry.params):
        raise InvalidLaunch(f"kernel {entry.name} takes {len(entry.params)} parameters, {len(params)} were given")
    for number, (param, data) in enumerate(zip(entry.params, params, strict=True)):
        if len(data) != param.size:
            raise InvalidLaunch(
                f"parameter {number} of kernel {entry.name} has {param.size} bytes (.{param.type}), "
                f"{len(data)} were given"
            )
    return grid, block


def check_shape(grid, block) -> tuple[Index3, Index3]:
    """Return grid and block with three dimensions each. Raises InvalidLaunch where they fit no kernel."""
    shapes = []
    for what, shape, limits in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        try:
            shape = tuple(int(n) for n in shape)
        except (TypeError, ValueError):
            raise InvalidLaunch(f"the {what} must be up to three integers, not {shape!r}") from None
        if not 1 <= len(shape) <= 3:
            raise InvalidLaunch(f"the {what} has {len(shape)} dimensions; a {what} has one to three")
        shape += (1,) * (3 - len(shape))
        for axis, n, limit in zip("xyz", shape, limits, strict=True):
            if not 1 <= n <= limit:
                raise InvalidLaunch(
                    f"{what} dimension {axis} is {n:,}; it must be from 1 to {limit:,}",
                    reason="Use smaller blocks and a larger grid." if what == "block" and n > limit else "",
                )
        shapes.append(shape)
    grid, block = shapes
    if (threads := math.prod(block)) > MAX_THREADS:
        raise InvalidLaunch(
            f"a block of {block[0]} × {block[1]} × {block[2]} = {threads:,} threads; "
            f"a GPU runs at most {MAX_THREADS:,}",
            reason="Use smaller blocks and a larger grid.",
        )
    return grid, block


def check_cluster(entry: Entry, grid: Index3, asked: Sequence[int] | None, wide: bool) -> Index3:
    """Return the size of a cluster: what the kernel says, or else what the launch asks for. Raises InvalidLaunch."""
    given = entry.cluster
    if asked is not None:
        x, y, z = (*(int(n) for n in asked), 1, 1)[:3]
        if given is not None and (x, y, z) != given:
            raise InvalidLaunch(
                f"clusters of {x} × {y} × {z} blocks; the kernel was compiled for {_times(given)} (__cluster_dims__)"
            )
        given = x, y, z
    if given is None:
        return 1, 1, 1
    blocks, most = math.prod(given), WIDE_CLUSTER if wide else MAX_CLUSTER
    if min(given) < 1 or blocks > most:
        raise InvalidLaunch(
            f"clusters of {_times(given)} = {blocks} blocks; a GPU with clusters has 1 to {most}",
            reason="Some GPUs allow 16 if asked (cudaFuncAttributeNonPortableClusterSizeAllowed, wide_clusters=True); "
            "8 are portable.",
        )
    for axis, n, size in zip("xyz", grid, given, strict=True):
        if n % size:
            raise InvalidLaunch(
                f"grid dimension {axis} is {n:,}, and clusters have {size} blocks along it",
                reason="The grid must consist of whole clusters: round it up, and let blocks without work do nothing.",
            )
    return given


def _times(shape: Index3) -> str:
    return " × ".join(map(str, shape))


MOST_THREADS = 132 * 2048  # that an H100 SXM holds at once
_WORKSPACE_BYTES = 64
_REGISTERS = frozenset(("%envreg1", "%envreg2"))
COOPERATIVE_HINT = (
    "Blocks can wait for one another (grid.sync()) only in a cooperative launch: cp.RawKernel(..., "
    "enable_cooperative_groups=True)."
)


def is_cooperative(translation, asked: bool, blocks: int, threads: int) -> bool:
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


def seeks_grid_barrier(translation) -> bool:
    """Return whether the kernel looks for the grid's barrier."""
    return any(not _REGISTERS.isdisjoint(sources(i)) for block in translation.blocks for i in block.body)


def grid_workspace(memory: DeviceMemory) -> int:
    """Return the address of new memory for the grid's barrier."""
    address = memory.allocate(_WORKSPACE_BYTES, "workspace of the grid")
    memory.mark_initialized(address, _WORKSPACE_BYTES)
    return address
