"""Launches compared with Nsight Compute: which of them may differ in shared memory, where counts are exact."""

from kernels.memory_access.launches import LAUNCHES

MAY_DIFFER = {launch.name for launch in LAUNCHES for d in launch.differences if d.counters.startswith("shared")}


def test_only_the_prefix_sum_of_one_tile_may():
    assert {"prefix sum of 8192", "prefix sum of 8007"} == MAY_DIFFER
