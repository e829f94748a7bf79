"""Step 7 beside cuBLASLt's fastest algorithm, over tables of shapes and over shapes that are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kernels.tensor_core.every_shape import Plan, launch
from kernels.tensor_core.shape_rule import RULE, group_of
from warpcourse.bench import hopper, measured_plans
from warpcourse.bench.measured_plans import Kernels, drawn, plain
from warpcourse.bench.shape_rule import Shape

SEED = 1795660235  # of the shapes drawn, after the code was final
TRANSPOSED = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (1000, 1001, 1002))
# A result rounded to float16 is off by up to 2^-11, in the mean by 2e-4; sums of float32 with k to 16384 by far less.
MOST_ERROR = {"float16": 3e-4, "float32": 3e-5}


def _launch(a: Any, b: Any, c: Any, plan: Plan, transposed: str = "NN") -> None:
    k = a.shape[0 if transposed[0] == "T" else 1]
    launch(a, b, c, plan, transposed, group_of(*c.shape, k))


def _compile_ahead(cases: Iterable[tuple[Plan, Shape, str]]) -> None:
    hopper.compile_ahead(plan.code("float16", transposed, direct=shape[1] % 8 > 0) for plan, shape, transposed in cases)


KERNELS = Kernels("float16", MOST_ERROR["float16"], _launch, RULE, _compile_ahead)


def drawn_again() -> dict[str, Any]:
    """Return the summary of the shapes drawn, cold, measured in this process."""
    return measured_plans.drawn_again(KERNELS, SEED)


def measured(shapes: Sequence[Shape]) -> dict[str, Any] | None:
    """Measure step 7 over the lab's shapes, those of networks, drawn ones and transposed operands.

    None where the GPU has not the instructions.
    """
    if not hopper.available():
        return None
    groups = {
        "lab": plain(shapes),
        "drawn multiples of 8": plain(drawn(SEED, 8)),
        "transposed": [(shape, letters) for shape in TRANSPOSED for letters in ("NN", "NT", "TN", "TT")],
    }
    return measured_plans.every_shape(KERNELS, SEED, groups, drawn_again)
