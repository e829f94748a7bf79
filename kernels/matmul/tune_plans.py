"""The tuner of step 10: `python -m kernels.matmul.tune_plans` measures all plans of many shapes beside cuBLASLt, fits
the rule's constants to half of them, and writes plans.json. Without a GPU: exit code 2.
"""

from kernels.matmul.measured_shapes import KERNELS
from kernels.matmul.measurements import SHAPES
from warpcourse.bench.measured_plans import NETWORKS, drawn, tuner

TUNED = (*drawn(11, 8, 20), *drawn(12, 1, 28), *drawn(13, 1, 24), *SHAPES, *NETWORKS, *drawn(1795729211, 1, 20))
AUTOTUNER = tuner("matmul", KERNELS, TUNED, __doc__, lambda: True)

if __name__ == "__main__":
    AUTOTUNER.main()
