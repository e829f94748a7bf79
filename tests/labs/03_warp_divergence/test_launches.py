"""Launches compared with Nsight Compute: which of them may differ in shared memory, where counts are exact."""

from kernels.warp_divergence.launches import LAUNCHES

MAY_DIFFER = {launch.name for launch in LAUNCHES for d in launch.differences if d.counters.startswith("shared")}


def test_only_the_pipelined_selection_may():
    assert {"cuda_select_pipelined<float, 12>, one block"} == MAY_DIFFER
