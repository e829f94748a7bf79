"""The tuner of step 10: `python -m kernels.matmul.tune_plans` measures all plans of many shapes beside cuBLASLt, fits
the rule's constants to half of them, and writes plans.json. Without a GPU: exit code 2.
"""

from kernels.matmul.measured_shapes import KERNELS
from kernels.matmul.measurements import SHAPES
from warpcourse.bench.measured_plans import NETWORKS, drawn, tuner

SLOW = (  # whose plan was slower than the library, of the shapes drawn on 2026-11-27
    *((187, 3371, 15026), (484, 15410, 547), (2719, 39, 169), (2016, 23, 3182), (21, 129, 117)),
    *((10200, 214, 2451), (1438, 15487, 393), (29, 60, 11005), (1290, 5696, 635), (25, 6431, 362), (163, 2823, 1342)),
    *((17, 163, 6776), (214, 2851, 77)),
)
FEW_ROWS = ((1, 4096, 11008), (1, 11008, 4096), (1, 1000, 2048), (1, 1001, 2048), (2, 4096, 4096), (3, 5001, 3000))
TUNED = (
    *drawn(11, 8, 20),
    *drawn(12, 1, 28),
    *drawn(13, 1, 24),
    *SHAPES,
    *NETWORKS,
    *drawn(1795729211, 1, 20),
    *SLOW,
    *FEW_ROWS,
)
AUTOTUNER = tuner("matmul", KERNELS, TUNED, __doc__, lambda: True)

if __name__ == "__main__":
    AUTOTUNER.main()
