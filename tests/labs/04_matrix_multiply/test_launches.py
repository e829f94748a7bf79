"""Launches compared with Nsight Compute: which of them may differ in shared memory, where counts are exact."""

from kernels.matmul.launches import LAUNCHES

MAY_DIFFER = {launch.name for launch in LAUNCHES for d in launch.differences if d.counters.startswith("shared")}


def test_only_steps_that_copy_ahead_may():
    shapes = ("128 × 128 × 32", "130 × 132 × 20", "65 × 131 × 37")
    large = {f"tuned 128 × 128, {shape}" for shape in shapes}
    split = {launch.name for launch in LAUNCHES if launch.name.startswith("split_k")}
    assert large | split | {f"tuned 64 × 64, {shape}" for shape in shapes[:2]} == MAY_DIFFER
