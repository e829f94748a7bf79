"""The tuner of step 7: `python -m kernels.tensor_core.tune_plans` measures all plans of many shapes beside cuBLASLt,
fits the rule's constants to half of them, and writes plans.json. Without a Hopper GPU: exit code 2.
"""

from kernels.tensor_core.measured_shapes import KERNELS
from kernels.tensor_core.measurements import SHAPES
from warpcourse.bench import hopper
from warpcourse.bench.measured_plans import NETWORKS, drawn, tuner

SLOW = (  # whose plan was slower than the library, of the shapes drawn on 2026-11-27
    *((1819, 356, 27), (11418, 260, 80), (1224, 456, 2640), (3152, 24, 1560), (24, 3984, 1656), (2928, 296, 10408)),
    *((122, 9775, 87), (2453, 4326, 46), (314, 1500, 33), (120, 9776, 88), (2784, 656, 1072)),
    *((492, 13734, 66), (2794, 4309, 22), (136, 1080, 13184), (792, 1656, 8408), (872, 2096, 14480), (2624, 408, 8296)),
)
TUNED = (
    *drawn(11, 8, 32),
    *drawn(12, 1, 32),
    *drawn(1795614535),
    *SHAPES,
    *NETWORKS,
    *drawn(21, 8, 48),
    *drawn(22, 1, 16),
    *drawn(1795729210, 8),
    *SLOW,
)
AUTOTUNER = tuner("tensor_core", KERNELS, TUNED, __doc__, hopper.available)

if __name__ == "__main__":
    AUTOTUNER.main()
