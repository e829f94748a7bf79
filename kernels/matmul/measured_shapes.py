"""Step 10 beside cuBLASLt's fastest algorithm, over tables of shapes and over shapes that are drawn."""

from collections.abc import Iterable, Sequence
from typing import Any

from kernels.matmul.shape_rule import RULE
from kernels.matmul.split_k import Plan, function_of, launch
from warpcourse.bench import measured_plans
from warpcourse.bench.autotune import compile_all
from warpcourse.bench.measured_plans import Kernels, plain
from warpcourse.bench.shape_rule import Shape

SEED = 1001128037  # of the shapes drawn, after the code was final
FLOAT32_ERROR = 2e-5  # float32 with k to 65536 stays below; TF32, with its 10 bits, comes to 3e-4


def _launch(a: Any, b: Any, c: Any, plan: Plan, transposed: str = "NN") -> None:
    if transposed != "NN":
        raise ValueError(f"step 10 takes no transposed operands, and these are {transposed}")
    launch(a, b, c, plan)


def _compile(wanted: tuple[Plan, int, bool]) -> None:
    function_of(*wanted)


def _compile_ahead(cases: Iterable[tuple[Plan, Shape, str]]) -> None:
    compile_all(_compile, {_instance(plan, shape) for plan, shape, _ in cases})


def _instance(plan: Plan, shape: Shape) -> tuple[Plan, int, bool]:
    """Return a plan that stands for all that are compiled alike, words that a copy of b takes, and whether rows of c
    are aligned."""
    words = next(n for n in (4, 2, 1) if shape[1] % n == 0)
    return Plan(plan.tiles, min(plan.parts, 2)), 4 if plan.pad else words, words == 4


KERNELS = Kernels("float32", FLOAT32_ERROR, _launch, RULE, _compile_ahead)


def drawn_again() -> dict[str, Any]:
    """Return the summary of the shapes drawn, cold, measured in this process."""
    return measured_plans.drawn_again(KERNELS, SEED)


def measured(shapes: Sequence[Shape]) -> dict[str, Any]:
    """Measure step 10 over the lab's shapes, those of networks and drawn ones."""
    return measured_plans.every_shape(KERNELS, SEED, {"lab": plain(shapes)}, drawn_again)
