"""Step 10 beside cuBLASLt's fastest algorithm, over tables of shapes and over shapes that are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kernels.matmul import shape_rule
from kernels.matmul.split_k import Plan, function_of, launch
from warpcourse.bench import measured_plans
from warpcourse.bench.autotune import compile_all
from warpcourse.bench.measured_plans import NETWORKS, Kernels, drawn
from warpcourse.bench.shape_rule import Shape

SEED = 1795556766  # of the shapes drawn, after the code was final
FLOAT32_ERROR = 2e-5  # float32 with k to 65536 stays below; TF32, with its 10 bits, comes to 3e-4
Case = tuple[Shape, str]


def _launch(a: Any, b: Any, c: Any, plan: Plan, transposed: str = "NN") -> None:
    if transposed != "NN":
        raise ValueError(f"step 10 takes no transposed operands, and these are {transposed}")
    launch(a, b, c, plan)


KERNELS = Kernels(
    "float32",
    FLOAT32_ERROR,
    _launch,
    lambda shape, transposed: shape_rule.plans(shape),
    lambda shape, transposed: shape_rule.chosen(*shape),
)


def _compile(wanted: tuple[Plan, bool, bool]) -> None:
    function_of(*wanted)


def compile_ahead(plans: Iterable[tuple[Plan, Shape]]) -> None:
    """Compile step 10 for plans, each for a shape, in a process for each core."""
    compile_all(_compile, {_instance(plan, shape) for plan, shape in plans})


def _instance(plan: Plan, shape: Shape) -> tuple[Plan, bool, bool]:
    """Return a plan that stands for all that are compiled alike, and whether rows of b and of c are aligned."""
    aligned = shape[1] % 4 == 0
    return Plan(plan.tiles, min(plan.parts, 2)), aligned or plan.pad, aligned


def _compiled(cases: Sequence[Case]) -> Sequence[Case]:
    compile_ahead((KERNELS.chosen(*case), case[0]) for case in cases)
    return cases


def _drawn() -> list[Case]:
    return [(shape, "NN") for shape in drawn(SEED)]


def drawn_again() -> dict[str, Any]:
    """Return the summary of the shapes drawn, cold, measured in this process."""
    return measured_plans.summary(measured_plans.compared(KERNELS, _compiled(_drawn()), ("cold",)))


def measured(shapes: Sequence[Shape]) -> dict[str, Any]:
    """Measure step 10 over the lab's shapes, those of networks and drawn ones."""
    groups: dict[str, Sequence[Case]] = {
        "lab": [(shape, "NN") for shape in shapes],
        "networks": [(shape, "NN") for shape in NETWORKS],
        "drawn": _drawn(),
    }
    _compiled([case for cases in groups.values() for case in cases])
    return {"seed": SEED} | measured_plans.every_shape(KERNELS, groups, drawn_again)
