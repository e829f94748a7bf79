"""Step 7 beside cuBLASLt's fastest algorithm, over tables of shapes and over shapes that are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kernels.tensor_core import shape_rule
from kernels.tensor_core.every_shape import ENTRY_FILE, Plan, launch
from warpcourse.bench import hopper, measured_plans
from warpcourse.bench.measured_plans import NETWORKS, Kernels, drawn
from warpcourse.bench.shape_rule import Shape

SEED = 1795557333  # of the shapes drawn, after the code was final
TRANSPOSED = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (1000, 1001, 1002))
# A result rounded to float16 is off by up to 2^-11, in the mean by 2e-4; sums of float32 with k to 16384 by far less.
MOST_ERROR = {"float16": 3e-4, "float32": 3e-5}


def _launch(a: Any, b: Any, c: Any, plan: Plan, transposed: str = "NN") -> None:
    k = a.shape[0 if transposed[0] == "T" else 1]
    launch(a, b, c, plan, transposed, shape_rule.group_of(*c.shape, k))


KERNELS = Kernels(
    "float16",
    MOST_ERROR["float16"],
    _launch,
    shape_rule.plans,
    lambda shape, transposed: shape_rule.chosen(*shape, transposed),
)
Case = tuple[Shape, str]


def compile_ahead(plans: Iterable[tuple[Plan, Shape, str]]) -> None:
    """Compile step 7 for plans, each for a shape and what is transposed, in a process for each core."""
    hopper.compile_ahead(
        (ENTRY_FILE, plan.options("float16", transposed, direct=shape[1] % 8 > 0)) for plan, shape, transposed in plans
    )


def _compiled(cases: Sequence[Case]) -> Sequence[Case]:
    compile_ahead((KERNELS.chosen(*case), *case) for case in cases)
    return cases


def _drawn() -> list[Case]:
    return [(shape, "NN") for shape in drawn(SEED)]


def drawn_again() -> dict[str, Any]:
    """Return the summary of the shapes drawn, cold, measured in this process."""
    return measured_plans.summary(measured_plans.compared(KERNELS, _compiled(_drawn()), ("cold",)))


def measured(shapes: Sequence[Shape]) -> dict[str, Any] | None:
    """Measure step 7 over the lab's shapes, those of networks, drawn ones and transposed operands.

    None where the GPU has not the instructions.
    """
    if not hopper.available():
        return None
    groups: dict[str, Sequence[Case]] = {
        "lab": [(shape, "NN") for shape in shapes],
        "networks": [(shape, "NN") for shape in NETWORKS],
        "drawn": _drawn(),
        "drawn multiples of 8": [(shape, "NN") for shape in drawn(SEED, 8)],
        "transposed": [(shape, letters) for shape in TRANSPOSED for letters in ("NN", "NT", "TN", "TT")],
    }
    _compiled([case for cases in groups.values() for case in cases])
    return {"seed": SEED} | measured_plans.every_shape(KERNELS, groups, drawn_again)
