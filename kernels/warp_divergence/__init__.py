"""Lab 03, warps that diverge: the order in which the sides of a branch run, what they cost, and what lanes can do
for each other; histogram and stream compaction up to and past CUB.

`KERNELS` has every kernel by name; the modules `order`, `divergence`, `tasks`, `histograms` and `selection`
check arguments and launch; `recordings` holds what was measured on an H100.
"""

from kernels.warp_divergence.kernel_table import KERNELS, kernel
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["KERNELS", "kernel", "recordings"]
