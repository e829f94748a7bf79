"""A step of the ladder counted in the simulator, on whole tiles: sectors, passes through shared memory, a trace."""

import numpy as np

from kernels.matmul.ladder import STEPS, step, tuned_function, tuned_grid
from kernels.matmul.tiles import Tiles, chosen
from warpcourse.bench import random_inputs
from warplab import resources
from warplab.launch.simulate import simulate
from warplab.simulator.count.counters import Counts, LaunchProfile

WARP = 32
SIDE, DEPTH = 128, 64  # a tile of C for the largest blocks; several tiles along k
FLOPS = 2 * WARP  # of a multiply-add of a whole warp


def counted(name: str, side: int = SIDE, depth: int = DEPTH, sizes: Tiles | None = None) -> LaunchProfile:
    """Count step `name` in the simulator, also where a GPU is: side × depth times depth × side, random numbers.

    All warps of the first block are traced. `sizes`: of step 9; None takes those for 4096 × 4096 × 4096.
    Raise ValueError for an unknown step, RuntimeError when the product is wrong.
    """
    chosen_step = step(name)
    random = random_inputs.generator()
    a, b = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((side, depth), (depth, side)))
    c = np.full((side, side), np.nan, np.float32)
    shared_bytes = 0
    if name == "tuned":
        sizes = sizes or chosen(4096, 4096, 4096)
        function, grid, block = tuned_function(sizes, True), tuned_grid(sizes, side, side), (sizes.threads,)
        shared_bytes = sizes.shared_bytes
    else:
        function, grid, block = chosen_step.function(), chosen_step.grid(side, side), chosen_step.block
    arguments = (a, b, c, *map(np.int32, (side, side, depth)))
    launch = simulate(
        function, grid, block, arguments, shared_bytes=shared_bytes, trace_warps=int(np.prod(block)) // WARP
    )
    if not np.array_equal(c, a @ b):  # whole numbers, small enough to be exact
        raise RuntimeError(f"{name} computed a wrong product of {side} × {depth} and {depth} × {side}")
    return launch


def per_multiply_add(counts: Counts) -> dict[str, float]:
    """Return, for one multiply-add of a whole warp: `sectors` loaded from global memory, `passes` through shared
    memory.

    Passes: wavefronts of loads, stores and asynchronous copies. Raise ValueError where multiply-adds are of float64.
    """
    if counts.flops_f64 or not counts.flops_f32:
        raise ValueError(
            f"{counts.flops_f32:,} operations in float32 and {counts.flops_f64:,} in float64 were counted; for a "
            "product in float32 start its sums with float32(0)"
        )
    products = counts.flops_f32 / FLOPS
    passes = counts.shared_load_wavefronts + counts.shared_store_wavefronts + counts.shared_copy_wavefronts
    return {"sectors": counts.global_load_sectors / products, "passes": passes / products}


def table() -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return head and rows, a step each, of what the lesson counts of a tile of 128 × 128 and k = 64."""
    rows = []
    for name in STEPS:
        launch = counted(name)
        c, each = launch.counts, (f"{number:.4f}" for number in per_multiply_add(launch.counts).values())
        loads = c.global_load_requests + c.shared_copy_requests, c.shared_load_requests
        counts = *loads, c.shared_load_conflicts, c.shared_store_conflicts
        rows.append((name, *each, *map("{:,}".format, counts), str(resources.occupancy(launch, "H100").blocks)))
    head = "step", "sectors per warp FMA", "passes per warp FMA", "global load instructions", "shared load instructions"
    return (*head, "load conflicts", "store conflicts", "blocks on an H100's SM"), rows
