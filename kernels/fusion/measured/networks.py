"""Real networks at their own size, in this lab's engine and by PyTorch: images of 224 × 224, random weights.

ResNet-50 and GoogLeNet are those that the onnx package ships, imported as any model is; MobileNetV2 is built here.
"""

import contextlib
import functools
import gc
import io
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from kernels.fusion.exchange.onnx_import import import_onnx
from kernels.fusion.graph import Graph, Node
from kernels.fusion.graph.build import Builder
from kernels.fusion.measured import clocks, others
from kernels.fusion.passes import quantise
from kernels.fusion.passes.optimise import optimise
from kernels.fusion.peers import on_pytorch
from kernels.fusion.plan import build, tuning
from kernels.fusion.plan.engine import Engine
from kernels.fusion.tactics import wgmma_tactics
from kernels.fusion.tactics.timing_cache import TimingCache
from warpcourse.bench import timing

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
SHIPPED = {"ResNet-50": "light_resnet50.onnx", "GoogLeNet": "light_inception_v1.onnx"}
NETWORKS = (*SHIPPED, "MobileNetV2")
BATCHES = (1, 32, 128)
MOST_TACTICS = 12  # of a layer that are timed
TOLERANCES = {"float32": 1e-2, "float16": 1e-2, "int8": 0.1}  # of the largest number
CALIBRATED = 2  # images, of random numbers as those measured
OURS, CUDNN = "our engine", "cuDNN's fused graphs"
WAYS = ("CUDA graph", "float32"), ("CUDA graph", "float16"), ("compiled", "float16"), (CUDNN, "float16")


@functools.cache
def network(name: str) -> Graph:
    """Return one of NETWORKS, without its last softmax, with random weights."""
    graph = import_onnx(LIGHT / SHIPPED[name]) if name in SHIPPED else _mobilenet_v2(name)
    random = np.random.default_rng(0)
    *nodes, last = (_random_weights(node, random) for node in graph.nodes)
    if last.op != "softmax":
        return graph.rebuilt([*nodes, last])
    tensors = {key: tensor for key, tensor in graph.tensors.items() if key != last.output}
    return Graph(name, tuple(nodes), tensors, graph.inputs, last.inputs)


def _mobilenet_v2(name: str) -> Graph:
    """MobileNetV2 (arXiv 1801.04381), table 2: expansion, filters, how often, and the first stride of each stage."""
    builder = Builder(name)
    x = builder.input("image", (3, 224, 224))

    def layer(
        x: str, filters: int, side: int = 1, stride: int = 1, *, apart: bool = False, linear: bool = False
    ) -> str:
        channels, number = builder.shape(x)[0], len(builder)
        weights = {"filters": np.zeros((filters, 1 if apart else channels, side, side))}
        x = builder.add("conv", f"conv{number}", [x], weights, padding=(side // 2,) * 4, stride=(stride, stride))
        names = "gamma", "beta", "mean", "variance"
        x = builder.add("batch_norm", f"norm{number}", [x], {key: np.ones(filters) for key in names})
        return x if linear else builder.add("clip", f"relu6_{number}", [x], alpha=0.0, beta=6.0)

    x = layer(x, 32, 3, 2)
    stages = (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    for expansion, filters, count, first in stages:
        for stride in (first, *[1] * (count - 1)):
            before, wide = x, builder.shape(x)[0] * expansion
            x = layer(x, wide) if expansion > 1 else x
            x = layer(layer(x, wide, 3, stride, apart=True), filters, linear=True)
            if builder.shape(x) == builder.shape(before):
                x = builder.add("add", f"sum{len(builder)}", [x, before])
    pooled = builder.add("global_average_pool", "pool", [layer(x, 1280)])
    weights = {"matrix": np.zeros((1000, 1280)), "bias": np.zeros(1000)}
    return builder.graph(builder.add("dense", "logits", [pooled], weights))


def _random_weights(node: Node, random: np.random.Generator) -> Node:
    """Return the node with weights that keep the size of what they meet."""

    def drawn(values: np.ndarray) -> np.ndarray:
        if values.ndim > 1:
            return random.standard_normal(values.shape) * math.sqrt(2 / values[0].size)
        return random.uniform(0.5, 1, values.shape)

    return node.with_weights(**{key: drawn(values) for key, values in node.weights.items()})


def images(name: str, batch: int) -> np.ndarray:
    """Return random images as a network takes them."""
    graph = network(name)
    shape = graph.tensors[graph.inputs[0]].shape
    return np.random.default_rng(1).standard_normal((batch, *shape), np.float32)


@functools.cache
def cache() -> TimingCache:
    """Return the timings of this process."""
    return TimingCache(tuning.device())


@functools.cache
def fused(name: str, precision: str = "float16") -> Graph:
    """Return a network after all passes."""
    calibrate = functools.partial(_scales, images(name, CALIBRATED))
    with contextlib.redirect_stdout(io.StringIO()):
        return optimise(network(name), precision, calibrate)


def _scales(given: np.ndarray, graph: Graph) -> dict[str, float]:
    return quantise.scales(graph, given, method="min-max")


def engine(name: str, batch: int, precision: str = "float16") -> Engine:
    """Return the tuned engine of a network as a CUDA graph."""
    graph = fused(name, precision)
    return Engine(build(graph, batch, tuned=tuning.tune(graph, batch, cache(), MOST_TACTICS)))


def profile(made: Engine) -> list[dict[str, Any]]:
    """Return seconds of each launch of an engine by itself, with its layer and tactic."""
    rows = []
    for layer, calls in zip(made.plan.layers, made.calls, strict=True):
        seconds = sum(timing.time_gpu(call.queue, runs=20).seconds for call in calls)
        tactic = made.plan.choices[layer.node.name]
        rows.append({"layer": layer.node.name, "op": layer.node.op, "tactic": tactic, "seconds": seconds})
    return rows


def networks(name: str) -> dict[str, Any]:
    """Measure a network by batch, in this lab's engine and in others by WAYS, each checked against PyTorch in FP32.

    `missing`: what could not be measured, and why. `profile`: our launches at the middle batch, one by one.
    """
    timing.cupy_on_gpu()
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    wgmma_tactics.compile_ahead(fused(name), BATCHES)
    profiled = profile(engine(name, BATCHES[1]))
    for batch in BATCHES:
        x = images(name, batch)
        eager, result = on_pytorch.prepared(network(name), x, "eager", "float32")
        expected = result()
        rows.append(_row(name, batch, "eager", "float32", eager, expected, expected))
        del eager, result
        rows.append(_our_row(name, batch, "float16", x, expected))
        for way, precision in WAYS:
            started = time.perf_counter()
            try:
                queue, result = _prepared(name, x, way, precision)
                rows.append(_row(name, batch, way, precision, queue, result(), expected))
                del queue, result
            except Exception as lack:  # of as many types as there are peers
                missing[f"{way}, {precision}, batch {batch}"] = f"{type(lack).__name__}: {lack}"[:200]
            gc.collect()
            print(f"  {way}, {precision}: {time.perf_counter() - started:.0f} s", flush=True)
    found = {"rows": rows, "missing": missing, "ratios": ratios(rows), "profile": profiled}
    return found | {"versions": on_pytorch.versions()}


def int8(name: str) -> dict[str, Any]:
    """Measure a network in this lab's engine by batch, in float16 and in INT8, each checked against PyTorch in FP32.

    `profile`: launches at the largest batch, one by one, by precision.
    """
    timing.cupy_on_gpu()
    rows, precisions = [], ("float16", "int8")
    for precision in precisions:
        wgmma_tactics.compile_ahead(fused(name, precision), BATCHES)
    for batch in BATCHES:
        x = images(name, batch)
        expected = on_pytorch.prepared(network(name), x, "eager", "float32")[1]()
        rows += [_our_row(name, batch, precision, x, expected) for precision in precisions]
    profiles = {precision: profile(engine(name, BATCHES[-1], precision)) for precision in precisions}
    return {"rows": rows, "missing": {}, "ratios": ratios(rows), "profile": profiles}


def autotuned(name: str, batch: int) -> dict[str, Any]:
    """Measure a network in this lab's engine and by torch.compile's max-autotune, which searches for a minute:
    `search_seconds`."""
    timing.cupy_on_gpu()
    x = images(name, batch)
    expected = on_pytorch.prepared(network(name), x, "eager", "float32")[1]()
    started = time.perf_counter()
    queue, result = on_pytorch.prepared(network(name), x, on_pytorch.AUTOTUNED, "float16")
    searched = time.perf_counter() - started
    theirs = _row(name, batch, on_pytorch.AUTOTUNED, "float16", queue, result(), expected)
    del queue, result
    wgmma_tactics.compile_ahead(fused(name), (batch,))
    rows = [theirs, _our_row(name, batch, "float16", x, expected)]
    about = {"search_seconds": searched, "options": on_pytorch.MAX_AUTOTUNE, "missing": {"batch 128": "not tried"}}
    return {"rows": rows, "ratios": ratios(rows), "versions": on_pytorch.versions(), **about}


def ratios(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return, by batch, the time of others in FP16, and of our engine in INT8, over that of our engine in FP16."""
    found: dict[str, dict[str, float]] = {}
    ours = {row["batch"]: row["gpu_seconds"] for row in rows if (row["way"], row["precision"]) == (OURS, "float16")}
    for row in rows:
        ratio, of_batch = row["gpu_seconds"] / ours[row["batch"]], found.setdefault(f"batch {row['batch']}", {})
        if row["precision"] == "int8":
            of_batch["our engine in INT8"] = ratio
        elif row["way"] != OURS and row["precision"] == "float16":
            of_batch[row["way"]] = ratio
    return found


def _prepared(name: str, x: np.ndarray, way: str, precision: str) -> others.Prepared:
    if way != CUDNN:
        return on_pytorch.prepared(network(name), x, way, precision)
    made = others.by_cudnn(fused(name), len(x), most=MOST_TACTICS)
    made.put(x)
    return made.queue, functools.partial(made.run, x)


def _our_row(name: str, batch: int, precision: str, x: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    made = engine(name, batch, precision)
    found = _row(name, batch, OURS, precision, made.queue, made.run(x), expected)
    return found | {"launches": len(made.launches), "tensor_bytes": made.plan.memory.nbytes}


def _row(
    name: str, batch: int, way: str, precision: str, queue: Any, found: np.ndarray, expected: np.ndarray
) -> dict[str, Any]:
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    made = {"network": name, "batch": batch, "way": way, "precision": precision, **clocks.times(queue)}
    made |= {"error": error, "correct": error <= TOLERANCES[precision]}
    print(f"  {made}", flush=True)
    return made
