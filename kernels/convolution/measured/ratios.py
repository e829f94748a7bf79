"""The lab's kernels against cuDNN's fastest plan in the same run: by layer, and as geometric mean."""

import math
from collections.abc import Callable, Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np

from kernels.convolution import ladder
from kernels.convolution.common.step import Step
from kernels.convolution.cudnn.graph import ConvolutionGraph
from kernels.convolution.cudnn.library import version
from kernels.convolution.cudnn.plan_table import first_choice
from kernels.convolution.cudnn.plans import TimedPlans, time_plans
from kernels.convolution.definition import networks, operands
from kernels.convolution.definition.geometry import PASSES, Convolution
from kernels.convolution.definition.networks import label
from warpcourse.bench.timing import Candidate, time_together

# Of float16's rounding 2e-4 on average; of float32's sums far less. More is a wrong result, or another arithmetic.
MOST_ERROR = {"float16": 4e-4, "float32": 3e-5}
SCREENING_RUNS, FINALISTS, COMPILED_PLANS = 3, 3, 2
ROUNDS, RUNS = 6, 5
COMPILED_LAYERS = (0, 3, 6)  # of networks.mobilenet(): from large to small images, one with stride 2
OURS, PLAIN = "ours", "plain"  # among plans' names


def launcher(step: Step, conv: Convolution, dtype: str, relu: bool = False) -> Callable[..., None]:
    """Return a step as a function of two inputs and the result, and the bias if there is one; its workspace is kept."""
    workspace = step.workspace(conv, dtype)
    if relu:
        return lambda x, w, y, bias: step.launch(x, w, y, conv, bias, True, workspace=workspace)
    return lambda first, second, result: step.launch(first, second, result, conv, workspace=workspace)


def compare(layer: networks.LayerGroup, kind: str, layout: str, dtype: str) -> dict[str, Any]:
    """Measure one layer's pass by the lab's fastest step and by cuDNN's fastest plans, in turns."""
    conv = layer.convolution
    sets = operands.random_sets(conv, kind, layout, dtype, RUNS)
    timed = _screened(ConvolutionGraph(conv, kind, layout, dtype), sets)
    step = ladder.fastest(conv, layout, dtype, kind)
    ours = {OURS: Candidate(launcher(step, conv, dtype), sets)}
    error = operands.error_of(conv, kind, layout, sets[0])
    return _compared(layer, step, ours, [(timed, sets)], error, dtype)


def compare_again(conv: Convolution, kind: str, layout: str, dtype: str, plan: str) -> dict[str, float]:
    """Return cuDNN's time by the plan of this name over that of the lab's fastest step, cold and warm: with operands
    that take turns, and with the same ones in every call."""
    sets, found = operands.random_sets(conv, kind, layout, dtype, RUNS), {}
    timed = time_plans(ConvolutionGraph(conv, kind, layout, dtype), sets, runs=1, finalists=0, checked=False, only=plan)
    both = launcher(ladder.fastest(conv, layout, dtype, kind), conv, dtype), timed.launchers[timed.fastest()[0]["id"]]
    for name, some in (("cold", sets), ("warm", sets[:1])):
        candidates = {str(i): Candidate(each, some) for i, each in enumerate(both)}
        ours, theirs = time_together(candidates, rounds=ROUNDS, runs=RUNS, warmup=1).values()
        found[name] = theirs.seconds / ours.seconds
    return found


def compare_fused(layer: networks.LayerGroup, layout: str, dtype: str) -> dict[str, Any]:
    """Measure the forward pass with bias and ReLU likewise, and our step without them.

    cuDNN takes a bias of either type: in float32 its kernels are compiled at run time, so only a few are tried.
    """
    conv, kind = layer.convolution, "forward"
    sets = operands.random_sets(conv, kind, layout, dtype, RUNS)
    bias = operands.random_bias(conv, dtype)
    single = bias.astype(np.float32)
    with_bias, with_single = ([(*arrays, b) for arrays in sets] for b in (bias, single))
    both = {"bias": True, "relu": True}
    found = [(_screened(ConvolutionGraph(conv, kind, layout, dtype, **both), sets, bias), with_bias)]
    if dtype != "float32":
        graph = ConvolutionGraph(conv, kind, layout, dtype, **both, bias_dtype="float32", modes=("A",))
        found.append((_screened(graph, sets, single, most=COMPILED_PLANS), with_single))
    step = ladder.fastest(conv, layout, dtype, kind)
    ours = {
        OURS: Candidate(launcher(step, conv, dtype, relu=True), with_single),
        PLAIN: Candidate(launcher(step, conv, dtype), sets),
    }
    error = operands.error_of(conv, kind, layout, sets[0], bias=bias, relu=True)
    return _compared(layer, step, ours, found, error, dtype)


def _screened(graph: ConvolutionGraph, sets: Sequence[tuple], bias: Any = None, most: int | None = None) -> TimedPlans:
    return time_plans(graph, sets, bias, runs=SCREENING_RUNS, finalists=0, checked=False, most=most)


def _compared(
    layer: networks.LayerGroup,
    step: Step,
    ours: dict[str, Candidate],
    found: Sequence[tuple[TimedPlans, Sequence[tuple]]],
    error: Callable[[Any], float],
    dtype: str,
) -> dict[str, Any]:
    """Time our candidates and the fastest plans of each graph in turns."""
    plans = {
        f"{number}:{row['plan']}": (row, Candidate(timed.launchers[row["id"]], arguments))
        for number, (timed, arguments) in enumerate(found)
        for row in timed.fastest(FINALISTS)
    }
    candidates = ours | {name: candidate for name, (_, candidate) in plans.items()}
    timings = time_together(candidates, rounds=ROUNDS, runs=RUNS, warmup=1)
    best = min(plans, key=lambda name: timings[name].seconds)
    errors = [_error(candidate, error) for candidate in (ours[OURS], plans[best][1])]
    seconds, theirs, flops = timings[OURS].seconds, timings[best].seconds, layer.convolution.flops
    row = {
        "layer": label(layer),
        "count": layer.count,
        "step": step.name,
        "seconds": seconds,
        "tflops": flops / seconds / 1e12,
        "cudnn_seconds": theirs,
        "cudnn_tflops": flops / theirs / 1e12,
        "cudnn_plan": plans[best][0]["plan"],
        "cudnn_workspace_bytes": plans[best][0]["workspace_bytes"],
        "first_choice": first_choice(found[0][0].rows)["seconds"] / found[0][0].fastest()[0]["seconds"],
        "ratio": theirs / seconds,
        "relative_error": errors[0],
        "cudnn_relative_error": errors[1],
        "correct": errors[0] < MOST_ERROR[dtype],
    }
    return row | ({"plain_seconds": timings[PLAIN].seconds} if PLAIN in timings else {})


def _error(candidate: Candidate, error: Callable[[Any], float]) -> float:
    """Return the error of a candidate's first result, in poisoned memory."""
    arguments = candidate.arguments[0]
    arguments[2].fill(math.nan)
    candidate.function(*arguments)
    return error(arguments[2])


def table(
    layers: Sequence[networks.LayerGroup], kind: str, layout: str, dtype: str, *, fused: bool = False
) -> dict[str, Any]:
    """Measure all layers compared, with the mean and the least of the ratios: cuDNN's time over ours.

    Of a row: `first_choice`, the time of the heuristics' first plan over the fastest's; `plain_seconds`, of our step
    without bias and ReLU.
    """
    rows = [compare_fused(layer, layout, dtype) if fused else compare(layer, kind, layout, dtype) for layer in layers]
    return summary(rows, kind, layout, dtype)


def summary(rows: list[dict[str, Any]], kind: str, layout: str, dtype: str) -> dict[str, Any]:
    """Return a table of the rows that `compare` made of a pass."""
    ratios = [row["ratio"] for row in rows]
    return {
        "cudnn": version(),
        "pass": kind,
        "layout": layout,
        "dtype": dtype,
        "geometric_mean": geometric_mean(ratios),
        "least": min(ratios),
        "rows": rows,
    }


def resnet50(kind: str) -> dict[str, Any]:
    """Measure a pass of ResNet-50's layers at batch 32, float16, NHWC."""
    return table(networks.compared(), kind, "NHWC", "float16")


def fused() -> dict[str, Any]:
    """Measure the forward pass with bias and ReLU in the same kernel; `plain_seconds`: our kernel without them."""
    found = table(networks.compared(), "forward", "NHWC", "float16", fused=True)
    found["cost_of_fusion"] = geometric_mean(row["seconds"] / row["plain_seconds"] for row in found["rows"])
    return found


def depthwise() -> dict[str, Any]:
    """Measure MobileNet's depthwise layers in float16, NHWC: the forward pass of all, the backward passes of some, and
    of those the forward pass in float32, NCHW. cuDNN compiles plans at run time, for a second or more of each layer and
    pass.
    """
    layers = networks.mobilenet()
    some = [layers[i] for i in COMPILED_LAYERS]
    found = {kind: table(layers if kind == "forward" else some, kind, "NHWC", "float16") for kind in PASSES}
    return {**found, "forward_float32": table(some, "forward", "NCHW", "float32")}
