"""The launches that `make compare-ncu` compares run in the simulator, and their counters follow from their arrays."""

import pytest

from kernels.recomputation.launches import LAUNCHES
from kernels.recomputation.silu import KERNELS, MOVED
from warplab import simulate


def test_every_kernel_is_launched_at_both_sizes():
    names = [launch.name for launch in LAUNCHES]
    expected = [f"{entry}, {name}, n = {n}" for n in (4096, 1003) for entry in KERNELS for name in KERNELS[entry]]
    assert names == expected
    assert set(MOVED) == set(KERNELS)


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_a_launch_moves_its_arrays_once(launch):
    counts = simulate(launch.kernel(), launch.grid, launch.block, launch.arguments).counts
    read, written = MOVED[launch.name.partition(",")[0]]
    n = int(launch.name.rpartition(" ")[2])
    whole = -(-4 * n // 32)
    # Three elements are left over: loaded and stored one by one, their sector counts each time; `silu_storing` may
    # load each twice, since s might be x.
    most = whole + (6 if "float4" in launch.name else 0)
    assert len(read) * whole <= counts.global_load_sectors <= len(read) * most
    assert len(written) * whole <= counts.global_store_sectors <= len(written) * most
