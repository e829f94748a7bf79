"""Pictures to play with: stride and offset of an access, padding and swizzle of a tile, a warp's steps one by one."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from warplab.draw.accesses import draw_accesses
from warplab.draw.banks import draw_banks
from warplab.draw.sliders import Sliders, sliders
from warplab.draw.timeline import draw_timeline, timeline_steps
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.constants import WARP_SIZE

STRIDED = """\
extern "C" __global__ void strided(const float *source, float *out, int stride, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = source[i * stride + offset];
}
"""
# A tile of 32 rows; in a swizzled row r, column c is kept at position c XOR r. Each lane has a row of its own.
COLUMN = """\
extern "C" __global__ void read_column(float *out, int column, int padding, int swizzled) {
    __shared__ float tile[32 * (32 + 8)];
    int lane = threadIdx.x, width = 32 + padding;
    for (int k = lane; k < 32 * width; k += 32) tile[k] = k;
    __syncwarp();
    out[lane] = tile[lane * width + (swizzled ? column ^ lane : column)];
}
"""
MOST_PADDING = 8
LAYOUT = ("plain", "swizzled")


def explore_accesses() -> Sliders:
    """Show what one warp's `out[i] = source[i * stride + offset]` asks of memory, with sliders for both numbers.

    float32; the kernel runs in the simulator at every move.
    """

    def draw(stride: int, offset: int) -> Figure:
        size = stride * (WARP_SIZE - 1) + offset + 1
        arrays = np.zeros(size, np.float32), np.zeros(WARP_SIZE, np.float32)
        launch = simulate(CudaSource(STRIDED, "strided"), 1, WARP_SIZE, (*arrays, np.int32(stride), np.int32(offset)))
        return draw_accesses(launch, "source")

    return sliders(draw, stride=range(1, 33), offset=range(33))


def explore_banks() -> Sliders:
    """Show which banks a warp needs to read a column of a 32 by 32 tile in shared memory, float32, a lane per row.

    Sliders: `padding`, unused words at the end of a row; `layout`, "plain" or "swizzled", which keeps column c of row r
    at position c XOR r; `column`. The kernel runs in the simulator at every move.
    """

    def draw(padding: int, layout: str, column: int) -> Figure:
        numbers = (np.int32(n) for n in (column, padding, layout == "swizzled"))
        launch = simulate(CudaSource(COLUMN, "read_column"), 1, WARP_SIZE, (np.zeros(WARP_SIZE, np.float32), *numbers))
        return draw_banks(launch, op="load")

    return sliders(draw, padding=range(MOST_PADDING + 1), layout=LAYOUT, column=range(32))


def explore_timeline(profile: object, **how: Any) -> Sliders:
    """Step through a warp's timeline: `draw_timeline` with a slider for the step that the warp has come to.

    `profile`, `how`: as `draw_timeline` takes them (`warp`, `block`, `names`, `by`, `others`, `start`, `most`).
    Later steps are left blank; the step itself is named with its source and its mask. At first all steps are drawn,
    so that a saved notebook shows the whole.
    Raises what `draw_timeline` raises.
    """
    steps = list(timeline_steps(profile, **how))
    return Sliders(lambda step: draw_timeline(profile, now=step, **how), {"step": steps}, {"step": steps[-1]})
