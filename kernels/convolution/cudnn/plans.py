"""All execution plans of a convolution built, checked and timed: the table that cuDNN's users choose from."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.convolution.cudnn.graph import ConvolutionGraph, Plan
from kernels.convolution.cudnn.plan_table import OK, NoPlan, able
from kernels.convolution.definition import operands
from warpcourse.bench.timing import Candidate, time_together

MOST_WORKSPACE = 8 * 2**30  # bytes; what a plan wants beyond that is not tried
FINALISTS = 4
RUNS = 5  # of every plan, before the fastest take turns


@dataclass
class TimedPlans:
    """The plans of a graph, timed. `rows`: as in `plan_table`; `launchers`: what runs a plan, by its id.

    A launcher takes the two inputs and the result, and the bias if the graph has one, and only queues.
    """

    graph: ConvolutionGraph
    rows: list[dict[str, Any]] = field(default_factory=list)
    launchers: dict[int, Callable[..., None]] = field(default_factory=dict)

    def fastest(self, count: int = 1) -> list[dict[str, Any]]:
        """Return the rows of the `count` fastest plans. NoPlan where none runs."""
        running = sorted(able(self.rows), key=lambda row: row["seconds"])
        if not running:
            raise NoPlan(f"no plan of cuDNN runs: {sorted({row['status'] for row in self.rows})}")
        return running[:count]


def time_plans(
    graph: ConvolutionGraph,
    sets: Sequence[operands.Arrays],
    bias: Any = None,
    *,
    runs: int = RUNS,
    finalists: int = FINALISTS,
    rounds: int = 3,
    checked: bool = True,
    notes: Sequence[str] = (),
    most: int | None = None,
    only: str = "",
) -> TimedPlans:
    """Build and time every plan, or the first `most`, on CuPy arrays; the `finalists` fastest then take turns.

    `sets`: two inputs and the result each, as `operands.random_sets` gives them; `bias`: of the graph's type. `runs`:
    of each plan, and of the finalists in each of `rounds`. `checked`: whether each plan's first result, in poisoned
    memory, is compared with float64. `notes`: numerical notes to ask for, which takes graphs for each. `only`: the plan
    of this name; "" for all.
    """
    found = TimedPlans(graph)
    after = (bias,) if graph.bias else ()
    arguments = [(*arrays, *after) for arrays in sets]
    error = None
    if checked:
        error = operands.error_of(graph.conv, graph.kind, graph.layout, sets[0], bias=bias, relu=graph.relu)
    numerical = graph.numerical_notes(notes) if notes else {}
    room: list[Any] = []  # the largest workspace so far, which all plans share: a large layer's would fill the memory
    for plan in [plan for plan in graph.plans[:most] if only in ("", plan.name)]:
        row = _row(plan, numerical.get(plan.id, ()))
        found.rows.append(row)
        launcher = _built(graph, plan, row, room)
        if launcher is not None and _runs(launcher, arguments[0], error, row):
            candidate = {"": Candidate(launcher, arguments)}
            row["seconds"] = time_together(candidate, rounds=1, runs=runs, warmup=1)[""].seconds
            found.launchers[plan.id] = launcher
    if finalists and found.launchers:
        leading = found.fastest(finalists)
        candidates = {str(row["id"]): Candidate(found.launchers[row["id"]], arguments) for row in leading}
        timings = time_together(candidates, rounds=rounds, runs=runs, warmup=1)
        for row in leading:
            row["seconds"] = timings[str(row["id"])].seconds
    return found


def _row(plan: Plan, numerical: Sequence[str]) -> dict[str, Any]:
    return {
        "id": plan.id,
        "plan": plan.name,
        "engine": plan.engine,
        "proposed": plan.proposed,
        "status": OK,
        "seconds": None,
        "workspace_bytes": None,
        "behavior": " ".join(plan.behavior),
        "numerical": " ".join(numerical),
        "relative_error": None,
    }


def _built(graph: ConvolutionGraph, plan: Plan, row: dict[str, Any], room: list[Any]) -> Callable[..., None] | None:
    """Return what runs the plan, with the workspace in `room`; None, and the reason in the row's status, where nothing
    does."""
    import cupy

    row["status"] = graph.build(plan)
    if row["status"] != OK:
        return None
    size = row["workspace_bytes"] = graph.workspace_bytes(plan)
    if size > MOST_WORKSPACE:
        row["status"] = f"not tried: more than {MOST_WORKSPACE >> 30} GiB of workspace"
        return None
    if size > sum(workspace.nbytes for workspace in room):
        room.clear()  # before the larger one takes its place
        room.append(cupy.empty(size, np.uint8))
    return lambda *arrays: graph.launch(plan, *arrays, workspace=room[0] if room else None)


def _runs(
    launcher: Callable[..., None], arguments: tuple, error: Callable[[Any], float] | None, row: dict[str, Any]
) -> bool:
    """Run a plan once into poisoned memory. False, and the reason in the row's status, if that fails."""
    import cupy

    result = arguments[2]
    result.fill(math.nan)
    try:
        launcher(*arguments)
        cupy.cuda.get_current_stream().synchronize()
    except RuntimeError as failure:  # of the frontend or of CUDA
        row["status"] = f"failed: {str(failure).strip()[:160]}"
        return False
    if error is not None:
        row["relative_error"] = error(result)
        if math.isnan(row["relative_error"]):
            row["status"] = "failed: left elements out"
            return False
    return True
