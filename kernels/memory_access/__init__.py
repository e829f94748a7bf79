"""Lab 02, memory access: transpose, sum, prefix sum and stencils, and the patterns that decide their speed.

`total` and `prefix_sum` take arrays of any size and check them; `patterns` holds the experiments; `recordings` what was
measured on an H100 and an H200.
"""

from kernels.memory_access.scanning import SCANS, prefix_sum
from kernels.memory_access.summing import SUMS, total
from kernels.memory_access.transposing import TRANSPOSES
from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__)

__all__ = ["SCANS", "SUMS", "TRANSPOSES", "prefix_sum", "recordings", "total"]
