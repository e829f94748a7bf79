"""The tuner of step 7: `python -m kernels.tensor_core.tune_plans` measures all plans of many shapes beside cuBLASLt,
fits the rule's constants to half of them, and writes plans.json. Without a Hopper GPU: exit code 2.
"""

from kernels.tensor_core.measured_shapes import KERNELS
from kernels.tensor_core.measurements import SHAPES
from warpcourse.bench import hopper
from warpcourse.bench.measured_plans import NETWORKS, drawn, tuner

TUNED = (
    *drawn(11, 8, 32),
    *drawn(12, 1, 32),
    *drawn(1795614535),
    *SHAPES,
    *NETWORKS,
    *drawn(21, 8, 48),
    *drawn(22, 1, 16),
    *drawn(1795729210, 8),
)
AUTOTUNER = tuner("tensor_core", KERNELS, TUNED, __doc__, hopper.available)

if __name__ == "__main__":
    AUTOTUNER.main()
