"""What the engine takes on a GPU: fused and unfused, by precision, batch, and way of launching; and its tactics."""

import functools
from typing import Any

import numpy as np

from kernels.fusion.graph import cost, interpret
from kernels.fusion.measured import clocks
from kernels.fusion.plan import build, parallel, tuning
from kernels.fusion.plan.engine import Engine
from kernels.fusion.tactics.timing_cache import TimingCache
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import OUTPUT
from kernels.fusion.trained.variants import KINDS, UNFUSED, variant
from warpcourse.bench import timing

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ENDS = (1, 128)
SIDE_BY_SIDE = "CUDA graph, side by side"
CAPTURED = ("CUDA graph", SIDE_BY_SIDE)
WAYS = ("launches", *CAPTURED)
COMPARED = 32  # images whose probabilities are compared with the interpreter's
TOLERANCE = {UNFUSED: 1e-4, "float32": 1e-4, "float16": 5e-3, "int8": 2e-2}


@functools.cache
def cache() -> TimingCache:
    """Return the timings of this process, so that each layer is timed once."""
    return TimingCache(tuning.device())


@functools.cache
def tuned_engine(kind: str, batch: int, way: str) -> Engine:
    """Return the engine of a variant with the fastest tactics.

    `way`: of WAYS. Where launches run side by side, only tensors share memory that no two such launches touch.
    """
    graph, side_by_side = variant(kind), way == SIDE_BY_SIDE
    plan = build(graph, batch, tuned=tuning.tune(graph, batch, cache()), side_by_side=side_by_side)
    return Engine(plan, cuda_graph=way in CAPTURED, side_by_side=side_by_side)


def row(kind: str, batch: int, way: str) -> dict[str, Any]:
    """Measure one engine timed and checked: see `clocks` for the times."""
    engine, test = tuned_engine(kind, batch, way), digits.split()[2]
    found = engine.run(test.images)
    exact = interpret.run(variant(kind), test.images[:COMPARED])[OUTPUT]
    error = float(np.abs(found[:COMPARED] - exact).max())
    again = engine.run(test.images)
    launches, moved, operations = cost.total(variant(kind), batch)
    engine.put(test.images[:batch])
    return {
        "kind": kind,
        "batch": batch,
        "way": way,
        "launches": len(engine.launches),
        "nodes": launches,
        "in_a_row": parallel.depth(engine.plan) if way == SIDE_BY_SIDE else len(engine.launches),
        **clocks.times(engine.queue),
        "moved_bytes": moved,
        "operations": operations,
        "tensor_bytes": engine.plan.memory.nbytes,
        "weights_bytes": engine.weights_bytes,
        "tensor_bytes_without_reuse": engine.plan.memory.nbytes_without_reuse,
        "accuracy": float((found.argmax(axis=1) == test.labels).mean()),
        "error": error,
        "bit_stable": found.tobytes() == again.tobytes(),
        "correct": error <= TOLERANCE[kind] and found.tobytes() == again.tobytes(),
    }


def engines() -> dict[str, Any]:
    """Measure every variant at both ends of the batches, by launches and as CUDA graphs.

    `fusion_speedup`: unfused over fused float32, both as a CUDA graph of one launch after the other.
    """
    timing.cupy_on_gpu()
    rows = [row(kind, batch, way) for batch in ENDS for kind in KINDS for way in WAYS]
    best = {(r["kind"], r["batch"]): r for r in rows if r["way"] == "CUDA graph"}
    speedups = {
        f"batch {batch}": best[UNFUSED, batch]["gpu_seconds"] / best["float32", batch]["gpu_seconds"] for batch in ENDS
    }
    return {"rows": rows, "fusion_speedup": speedups}


def batches() -> dict[str, Any]:
    """Measure the latency and throughput by batch in each precision, fused, as the faster of two CUDA graphs."""
    timing.cupy_on_gpu()
    return {"rows": [_faster(kind, batch) for kind in KINDS[1:] for batch in BATCHES]}


def _faster(kind: str, batch: int) -> dict[str, Any]:
    """Return the row of the CUDA graph that takes the GPU less time."""
    return min((row(kind, batch, way) for way in CAPTURED), key=lambda found: found["gpu_seconds"])


def tactics() -> dict[str, Any]:
    """Measure seconds of every tactic of every layer, by variant and batch: what tuning chose from."""
    timing.cupy_on_gpu()
    found = {
        f"{kind}, batch {batch}": tuning.tune(variant(kind), batch, cache()).seconds for kind in KINDS for batch in ENDS
    }
    return {"seconds": found}


_EMPTY = 'extern "C" __global__ void empty() {}'


def empty_launches(count: int = 57) -> dict[str, Any]:
    """Measure so many kernels that do nothing, launched one by one and as a CUDA graph: what a launch costs by
    itself."""
    cupy = timing.cupy_on_gpu()
    kernel = cupy.RawModule(code=_EMPTY).get_function("empty")

    def launches() -> None:
        for _ in range(count):
            kernel((1,), (32,), ())

    launches()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        launches()
        graph = stream.end_capture()
    return {"count": count, "launches": clocks.times(launches), "CUDA graph": clocks.times(graph.launch)}
