"""The launches that `make compare-ncu` compares run in the simulator, and lanes read and write side by side."""

import pytest

from kernels.fusion.launches import LAUNCHES
from warplab import simulate

# Most sectors per request, of loads and stores. Lanes of a CBR's fragments read 64 bytes of each of eight rows, two
# sectors each; quantising reads NCHW channel by channel for NHWC's sake, a filter in a group the few channels of its
# group; what moves 16 bytes per lane takes 16 sectors; the rest is close to 128 bytes a request.
MOST = {
    "cbr float16 by wgmma": (16, 16),
    "cbr int8 by wgmma": (16, 16),
    "cbr of an image": (8, 16),
    "cbr in groups": (32, 2),
    "cbr of each channel": (16, 16),
    "cbr float32": (4, 4),
    "cbr float16": (16, 4),
    "cbr int8": (16, 4),
    "max pool": (8, 4),
    "global average": (4, 4),
    "quantise": (32, 1),
    "add": (4, 4),
    "softmax": (2, 2),
}


def test_each_kernel_is_launched():
    kernels = {launch.name.rpartition(", ")[2].partition("_")[0] for launch in LAUNCHES}
    cbr = {"f32", "pixels", "f16", "dp4a", "i8", "first", "grouped", "depthwise", "wgmma"}
    assert kernels == cbr | {"pool", "pointwise", "softmax"}
    assert len({launch.name for launch in LAUNCHES}) == len(LAUNCHES)


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_a_launch_reads_and_writes_side_by_side(launch):
    counts = simulate(
        launch.kernel(), launch.grid, launch.block, launch.arguments, shared_bytes=launch.shared_bytes
    ).counts
    loads, stores = next(limits for name, limits in MOST.items() if launch.name.startswith(name))
    assert counts.global_load_sectors <= loads * counts.global_load_requests
    assert counts.global_store_sectors <= stores * counts.global_store_requests
    assert counts.local_load_requests == counts.local_store_requests == 0  # nothing spilled to local memory
