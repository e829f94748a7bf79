"""The launches that `make compare-ncu` compares run in the simulator, and their threads share the work."""

import pytest

from kernels.serving.launches import LAUNCHES, ROUNDS, STEPS
from warplab import simulate

BY_NAME = {launch.name: launch for launch in LAUNCHES}


def counted(name):
    launch = BY_NAME[name]
    return simulate(launch.kernel(), launch.grid, launch.block, launch.arguments).counts


def test_each_kernel_is_launched():
    kernels = {name.removeprefix("small network, ").partition(",")[0] for name in BY_NAME}
    assert kernels >= {
        "cuda_spin",
        "numba_spin",
        "cuda_copy",
        "numba_copy",
        "cuda_scatter",
        "cuda_chase",
        "cuda_conv3x3",
        "cuda_head",
    }
    assert len(BY_NAME) == len(LAUNCHES)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_launch_runs_and_spills_nothing(name):
    counts = counted(name)
    assert counts.warp_instructions > 0
    assert counts.local_load_requests == counts.local_store_requests == 0


@pytest.mark.parametrize("name", ["cuda_spin", "numba_spin"])
def test_spinning_computes_and_hardly_touches_memory(name):
    counts = counted(f"{name}, n = 1000")
    assert counts.flops_f32 == 2 * 1000 * ROUNDS
    assert counts.global_load_requests == counts.global_store_requests == 32
    assert counts.global_load_sectors == counts.global_store_sectors == 125


@pytest.mark.parametrize(
    ("name", "requests", "sectors"),
    [
        ("cuda_copy, n = 4100, 1 blocks", 33, 513),
        ("cuda_copy, n = 4100, 5 blocks", 33, 513),
        ("numba_copy, n = 4096, 1 blocks", 128, 512),
        ("numba_copy, n = 1000, 5 blocks", 32, 125),
    ],
)
def test_copying_moves_each_sector_once(name, requests, sectors):
    counts = counted(name)
    assert counts.global_load_sectors == counts.global_store_sectors == sectors
    assert counts.global_load_requests == counts.global_store_requests == requests


@pytest.mark.parametrize(("columns", "sectors"), [(1, 500), (8, 4000), (40, 4000)])
def test_scattering_stores_in_more_sectors_the_farther_it_goes(columns, sectors):
    counts = counted(f"cuda_scatter, n = 4000, {columns} columns")
    assert counts.global_load_sectors == 500
    assert counts.global_store_sectors == sectors


def test_a_chase_has_a_sector_for_each_thread_and_step():
    assert counted("cuda_chase, n = 1").global_load_requests == STEPS
