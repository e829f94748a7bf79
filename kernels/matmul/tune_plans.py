"""The tuner of step 10: `python -m kernels.matmul.tune_plans` measures all plans of many shapes beside cuBLASLt, fits
the rule's constants to half of them, and writes plans.json. Without a GPU: exit code 2.
"""

from __future__ import annotations

import functools
from typing import Any

from kernels.matmul import shape_rule
from kernels.matmul.measured_shapes import KERNELS, compile_ahead
from kernels.matmul.measurements import SHAPES
from warpcourse.bench import measured_plans
from warpcourse.bench.autotune import Autotuner
from warpcourse.bench.measured_plans import NETWORKS, drawn
from warpcourse.bench.shape_rule import Shape

TUNED: tuple[Shape, ...] = (*drawn(11, 8, 20), *drawn(12, 1, 28), *SHAPES, *NETWORKS)


@functools.cache
def rows() -> list[dict[str, Any]]:
    """Return the times of all plans of the shapes TUNED."""
    compile_ahead((plan, shape) for shape in TUNED for plan in shape_rule.plans(shape))
    return measured_plans.table(KERNELS, TUNED, shape_rule.packed)


def rule() -> dict[str, Any]:
    """Return the constants of the rule, and its regret."""
    return measured_plans.fitted(shape_rule.rows(rows()), shape_rule.terms, shape_rule.estimate, shape_rule.START)


AUTOTUNER = Autotuner("matmul.tune_plans", shape_rule.PATH, {"rule": rule, "rows": rows}, __doc__)

if __name__ == "__main__":
    AUTOTUNER.main()
