"""Launches compared with Nsight Compute: which of them may differ in shared memory, where counts are exact."""

from kernels.memory_access.launches import LAUNCHES

COPIED = ("cuda_sectors", "cuda_few_columns")  # by cp.async
MAY_DIFFER = {launch.name for launch in LAUNCHES for d in launch.differences if d.counters.startswith("shared")}


def test_only_the_prefix_sum_of_one_tile_and_asynchronous_copies_may():
    copies = {f"{name}: transpose of {shape}" for name in COPIED for shape in ("128 × 128", "101 × 157")}
    assert {"prefix sum of 8192", "prefix sum of 8007", *copies} == MAY_DIFFER
