"""Other engines on the same network and GPU: PyTorch, cuDNN's fused graphs, TensorRT; and "20 ×" taken apart."""

import contextlib
import gc
import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernels.fusion import tactics
from kernels.fusion.exchange.onnx_export import export_onnx
from kernels.fusion.graph import Graph, Node, interpret
from kernels.fusion.measured import clocks
from kernels.fusion.measured.engine import CAPTURED, ENDS, row
from kernels.fusion.passes.choose_layout import choose_layout
from kernels.fusion.peers import on_cudnn, on_pytorch, on_tensorrt
from kernels.fusion.plan import build, tuning
from kernels.fusion.plan.engine import Engine
from kernels.fusion.tactics.layer import layers
from kernels.fusion.tactics.timing_cache import TimingCache
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import OUTPUT
from kernels.fusion.trained.variants import KINDS, UNFUSED, variant
from warpcourse.bench import timing

ANY = "any precision"
GROUPS = ("float32", "float16", ANY)  # within which engines are compared
CLOCKS = ("gpu_seconds", "latency_seconds", "steady_seconds")
TOLERANCE = {"float32": 1e-3, "tf32": 1e-2, "float16": 1e-2}


def peers(batch: int = ENDS[0], autotuned: bool = False) -> dict[str, Any]:
    """Measure our engine beside the others at one batch. `ratios`: the fastest other's time over ours, at equal
    precision.

    `autotuned`: beside torch.compile's max-autotune instead, which searches first. `missing`: what could not be
    measured, and why.
    """
    timing.cupy_on_gpu()
    images = digits.split()[2].images[:batch]
    expected = interpret.run(variant(UNFUSED), images)[OUTPUT]
    rows, missing = [_our_row(kind, batch, way) for kind in KINDS[1:] for way in CAPTURED], {}
    for name, precision, prepare in _autotuned(images) if autotuned else _others(batch, images):
        started = time.perf_counter()
        try:
            queue, result = prepare()
            error = float(np.abs(result() - expected).max())
            rows.append(
                {"name": name, "precision": precision, "batch": batch, "ours": False}
                | clocks.times(queue)
                | {"error": error, "correct": error <= TOLERANCE[precision]}
            )
            del queue, result
            print(f"  {rows[-1]}", flush=True)
        except Exception as lack:  # not installed, or it cannot run this network: of as many types as there are peers
            missing[f"{name}, {precision}"] = f"{type(lack).__name__}: {lack}"[:200]
            print(f"  {name}, {precision}: {lack!r}"[:1000], flush=True)
        print(f"  {name}, {precision}, batch {batch}: {time.perf_counter() - started:.0f} s", flush=True)
        gc.collect()
    options = {"options": on_pytorch.MAX_AUTOTUNE} if autotuned else {}
    return {"rows": rows, "missing": missing, "ratios": ratios(rows), "versions": on_pytorch.versions(), **options}


def ratios(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return, by batch and precision, the time of the fastest other over the time of our fastest, for each clock; above
    1: ours."""
    found: dict[str, dict[str, float]] = {}
    for batch in dict.fromkeys(r["batch"] for r in rows):
        for group in GROUPS:
            able = [r for r in rows if r["batch"] == batch and group in (ANY, r["precision"])]
            ours, others = ([r for r in able if r["ours"] == own and r["correct"]] for own in (True, False))
            if ours and others:
                found[f"batch {batch}, {group}"] = {
                    key.removesuffix("_seconds"): min(r[key] for r in others) / min(r[key] for r in ours)
                    for key in CLOCKS
                }
    return found


def _our_row(kind: str, batch: int, way: str) -> dict[str, Any]:
    found = row(kind, batch, way)
    kept = {key: found[key] for key in (*CLOCKS, "launches", "error", "correct")}
    return {"name": f"our engine, {way}", "precision": kind, "batch": batch, "ours": True} | kept


Prepared = tuple[Callable[[], Any], Callable[[], np.ndarray]]


def _others(batch: int, images: np.ndarray) -> Iterator[tuple[str, str, Callable[[], Prepared]]]:
    """Yield name, precision, and what prepares it."""
    for precision in on_pytorch.PRECISIONS:
        # TF32 lies between the other two, and compiling takes long.
        for way in on_pytorch.WAYS if precision != "tf32" else on_pytorch.WAYS[:-1]:
            yield _pytorch(way, precision, images)
    for precision in on_pytorch.PRECISIONS:
        yield "cuDNN's fused graphs", precision, lambda p=precision: _cudnn(batch, images, p)
    if on_tensorrt.is_installed():
        model = export_onnx(variant(UNFUSED))
        for precision in ("float32", "float16"):
            yield "TensorRT", precision, lambda p=precision: on_tensorrt.prepared(model, images, p)


def _autotuned(images: np.ndarray) -> Iterator[tuple[str, str, Callable[[], Prepared]]]:
    for precision in ("float32", "float16"):
        yield _pytorch(on_pytorch.AUTOTUNED, precision, images)


def _pytorch(way: str, precision: str, images: np.ndarray) -> tuple[str, str, Callable[[], Prepared]]:
    return f"PyTorch, {way}", precision, lambda: on_pytorch.prepared(variant(UNFUSED), images, way, precision)


def _cudnn(batch: int, images: np.ndarray, precision: str) -> Prepared:
    """Prepare our engine with cuDNN's kernels wherever they run: not for convolutions that write several slices.

    float32 lies in NHWC, for which alone cuDNN fuses. RuntimeError where cuDNN has no plan for any layer.
    """
    with contextlib.redirect_stdout(io.StringIO()):  # what the pass says
        full = variant("float16") if precision == "float16" else choose_layout(variant("float32"), {"float32": "NHWC"})
    engine = by_cudnn(full, batch, tf32=precision == "tf32")
    engine.put(images)

    def result() -> np.ndarray:
        return engine.run(images)

    return engine.queue, result


def by_cudnn(full: Graph, batch: int, *, tf32: bool = False, most: int | None = None) -> Engine:
    """Return the engine of an optimised graph with cuDNN's kernels for the layers that they run; `most`: as of
    `tuning.tune`, for the others."""
    graph, tactic = _one_slice_each(full), on_cudnn.tactic(tf32=tf32)
    able = {
        layer.node.name: tactic.name
        for layer in layers(graph, batch)
        if layer.node.op in tactic.ops and not tactic.refuses(layer)
    }
    if not able:
        raise RuntimeError("cuDNN has no plan that fuses for any layer")
    print(f"  cuDNN's fused graphs: {len(able)} layers of {len(graph.nodes)}", flush=True)
    tuned = tuning.tune(graph, batch, TimingCache(tuning.device()), most)
    tactics.register(tactic, replace=True)
    try:
        return Engine(build(graph, batch, tuned=tuned, choices=able), cuda_graph=True)
    finally:
        tactics.forget(tactic.name)


def _one_slice_each(graph: Graph) -> Graph:
    """Return the graph with every cbr that writes several slices taken apart again: cuDNN's graphs write one tensor."""
    nodes = []
    for node in graph.nodes:
        if len(node.outputs) == 1:
            nodes.append(node)
            continue
        start = 0
        for i, part in enumerate(node.outputs):
            weights = {name: values[start : start + part.channels] for name, values in node.weights.items()}
            nodes.append(Node(f"{node.name} {i}", node.op, node.inputs, (part,), node.attributes, weights))
            start += part.channels
    return graph.rebuilt(nodes)
