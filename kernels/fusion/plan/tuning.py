"""Tuning: every tactic of every layer is timed, and the fastest chosen; what the timing cache holds is not timed again.

On a GPU times are medians of events. In the simulator there are none: there tactics are ranked by the roofline's
estimate for a named card, a lower bound by arithmetic, and everything says so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.fusion.graph import Graph
from kernels.fusion.graph.nodes import Tensor
from kernels.fusion.plan.memory_plan import WITHOUT_LAUNCH
from kernels.fusion.tactics import candidates
from kernels.fusion.tactics.layer import Layer, layers
from kernels.fusion.tactics.tactic import Call, Tactic
from kernels.fusion.tactics.timing_cache import TimingCache
from warpcourse.bench import timing
from warplab import cp
from warplab.estimating.roofline import roofline
from warplab.hardware import backend
from warplab.launch import profiling
from warplab.text.tables import Column, Table, duration

MOST_DRAWN = 2**20  # numbers of a tensor, which then repeat
ESTIMATED_FOR = "H100"  # the card of the simulator's estimates
DTYPES = {"float32": np.float32, "float16": np.float16, "int8": np.int8}


Operands = tuple[list[Any], list[Any]]


@dataclass(frozen=True)
class Tuned:
    """What was chosen for each layer, and from what. `seconds`: layer's name -> tactic's name -> seconds."""

    seconds: dict[str, dict[str, float]]
    origin: str
    estimated: bool

    @property
    def choices(self) -> dict[str, str]:
        """Return the fastest tactic of each layer; of equally fast ones the default."""
        return {layer: min(times, key=times.__getitem__) for layer, times in self.seconds.items()}

    @property
    def label(self) -> str:
        """Return what a table of these times must say."""
        return (
            f"estimated by roofline for {self.origin}: no measurement"
            if self.estimated
            else f"measured on {self.origin}"
        )

    def __str__(self) -> str:
        rows = []
        for layer, times in self.seconds.items():
            best = self.choices[layer]
            slowest = max(times.values())
            rows.append([layer, best, duration(times[best]), str(len(times)), duration(slowest)])
        columns = [Column("layer", "left"), Column("tactic", "left"), *map(Column, ("time", "tactics", "slowest"))]
        return f"{Table(columns, rows).text()}\n{self.label}"


def device() -> str:
    """Return the device whose times a cache holds: the GPU's name, or what the simulator estimates for."""
    if backend.name() == "gpu":
        return timing.machine()["device"]
    return f"estimates for {ESTIMATED_FOR}"


def capability() -> int | None:
    """Compute capability of the GPU, 80 for 8.0; None in the simulator, which runs all tactics."""
    return int(cp.cuda.Device().compute_capability) if backend.name() == "gpu" else None


def tune(graph: Graph, batch: int = 1, cache: TimingCache | None = None, most: int | None = None) -> Tuned:
    """Time all tactics of all layers, but for those in `cache`, to which times are added.

    `most`: so many of each layer, those that the default order has first; None: all of them.
    """
    cache = TimingCache(device()) if cache is None else cache
    found = {}
    for layer in layers(graph, batch):
        if layer.node.op in WITHOUT_LAUNCH:
            continue
        times, arrays = {}, None
        for tactic in candidates(layer, capability())[:most]:
            known = cache.get(layer, tactic.name)
            if known is None:
                arrays = arrays or operands(layer)
                known = seconds(layer, tactic, arrays)
                cache.put(layer, tactic.name, known)
            times[tactic.name] = known
        found[layer.node.name] = times
    estimated = backend.name() != "gpu"
    return Tuned(found, ESTIMATED_FOR if estimated else device(), estimated)


def seconds(layer: Layer, tactic: Tactic, arrays: Operands | None = None) -> float:
    """Return seconds of one tactic on random inputs: measured on a GPU, estimated in the simulator."""
    calls = bound(layer, tactic, arrays)
    if backend.name() == "gpu":
        return timing.time_gpu(_all(calls)).seconds
    return estimate(calls)


def estimate(calls: list[Call], card: str = ESTIMATED_FOR) -> float:
    """Return the roofline's lower bound for launches one after the other, in seconds, from what the simulator
    counts."""
    counted = profiling.RecordedLaunches()
    profiling.collect(counted)
    try:
        _all(calls)()
    finally:
        profiling.stop(counted)
    return math.fsum(roofline(launch, card).seconds for launch in counted)


def operands(layer: Layer) -> Operands:
    """Return random inputs of a layer, and room for its outputs."""
    random = np.random.default_rng(0)
    inputs = [_random(tensor, layer.batch, random) for tensor in layer.reads]
    outputs = {t.name: cp.zeros(memory_shape(t, layer.batch), DTYPES[t.dtype]) for _, t in layer.writes}
    return inputs, [outputs[t.name] for _, t in layer.writes]


def bound(layer: Layer, tactic: Tactic, arrays: Operands | None = None) -> list[Call]:
    """Return a tactic's launches for a layer, bound to its weights and to `arrays`, by default of their own."""
    weights = {name: cp.asarray(array) for name, array in tactic.weights(layer).items()}
    return tactic.bind(layer, *(arrays or operands(layer)), weights)


def memory_shape(tensor: Tensor, batch: int) -> tuple[int, ...]:
    """Return the shape of a tensor's array: (batch, *shape), images in the tensor's layout."""
    shape = tensor.shape
    return (batch, *shape[1:], shape[0]) if tensor.layout == "NHWC" and len(shape) == 3 else (batch, *shape)


def _random(tensor: Tensor, batch: int, random: np.random.Generator) -> Any:
    shape = memory_shape(tensor, batch)
    drawn = min(math.prod(shape), MOST_DRAWN)
    if tensor.dtype == "int8":
        values = random.integers(-127, 128, drawn).astype(np.int8)
    else:
        values = random.uniform(-1, 1, drawn).astype(DTYPES[tensor.dtype])
    return cp.asarray(np.resize(values, shape))


def _all(calls: list[Call]) -> Callable[[], None]:
    def run() -> None:
        for call in calls:
            call.queue()

    return run
