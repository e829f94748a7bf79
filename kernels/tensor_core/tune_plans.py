"""The tuner of step 7: `python -m kernels.tensor_core.tune_plans` measures all plans of many shapes beside cuBLASLt,
fits the rule's constants to half of them, and writes plans.json. Without a Hopper GPU: exit code 2.
"""

from __future__ import annotations

import functools
from typing import Any

from kernels.tensor_core import shape_rule
from kernels.tensor_core.measured_shapes import KERNELS, compile_ahead
from kernels.tensor_core.measurements import SHAPES
from warpcourse.bench import hopper, measured_plans
from warpcourse.bench.autotune import Autotuner
from warpcourse.bench.measured_plans import NETWORKS, drawn
from warpcourse.bench.shape_rule import Shape

TUNED: tuple[Shape, ...] = (*drawn(11, 8, 32), *drawn(12, 1, 32), *SHAPES, *NETWORKS)


@functools.cache
def rows() -> list[dict[str, Any]] | None:
    """Return the times of all plans of the shapes TUNED; None where the GPU has not the instructions."""
    if not hopper.available():
        return None
    compile_ahead((plan, shape, "NN") for shape in TUNED for plan in shape_rule.plans(shape))
    return measured_plans.table(KERNELS, TUNED, shape_rule.packed)


def rule() -> dict[str, Any] | None:
    """Return the constants of the rule, and its regret."""
    found = rows()
    if found is None:
        return None
    return measured_plans.fitted(shape_rule.rows(found), shape_rule.terms, shape_rule.estimate, shape_rule.START)


AUTOTUNER = Autotuner("tensor_core.tune_plans", shape_rule.PATH, {"rule": rule, "rows": rows}, __doc__)

if __name__ == "__main__":
    AUTOTUNER.main()
