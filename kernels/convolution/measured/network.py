"""Networks' layers timed one by one by cuDNN (fully connected: cuBLAS): which kind takes how much of the time.

Every layer finds its data in memory, not in the L2; launches are queued ahead, so the host's time stays out. A network
that runs as a whole differs in both. Convolutions run by their fastest plan. cuDNN's kernels for batch norm's inference
and ReLU move half of the bytes per second that an H100's memory could, or less (2026-11-22); with better ones the share
of convolution would be larger. `float32`: NCHW, sums of float32 products; `tf32`: the same with plans that round
factors to TF32; `mixed`: NHWC, float16 with sums in float32, weights updated in float32.

The library's kernels alone are timed here, none of the lab's. recordings.json holds what cuDNN 9.19.0 did on an H100
80GB HBM3 on 2026-11-27, under `network` and `folded_network`; and on 2026-11-26 `older_networks`:
the gradients of their biases, not measured, would add at most 2 % to VGG-16's training, by the bytes that they read.
"""

import functools
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from kernels.convolution.cudnn import layers
from kernels.convolution.cudnn.graph import ConvolutionGraph
from kernels.convolution.cudnn.library import version
from kernels.convolution.cudnn.plans import time_plans
from kernels.convolution.definition import networks, operands
from kernels.convolution.definition.geometry import PASSES, Convolution
from kernels.convolution.definition.networks import LayerGroup
from warpcourse.bench.timing import Candidate, cupy_on_gpu, sets_beyond_l2, time_gpu, time_together

PRECISIONS = {"float32": ("NCHW", "float32"), "tf32": ("NCHW", "float32"), "mixed": ("NHWC", "float16")}
BATCH = 32
RUNS, FINALISTS = 5, 2
MODES = ("A", "FALLBACK")  # on Hopper, B proposes what A does

_UPDATE = r"""
extern "C" __global__ void update(float *w, float *momentum, const T *gradient, T *copy, float rate, long long n) {
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float m = 0.9f * momentum[i] + float(gradient[i]);
        momentum[i] = m;
        const float value = w[i] - rate * m;
        w[i] = value;
        if (sizeof(T) == 2) copy[i] = T(value);  // what the next forward pass reads
    }
}
"""


def seconds_of(function: Callable[..., None], arguments: Callable[[], tuple], nbytes: int) -> float:
    """Return the median time of a call that moves so many bytes. `arguments`: makes a set of arrays."""
    sets = [arguments() for _ in range(sets_beyond_l2(nbytes, RUNS))]
    return time_gpu(function, sets, runs=RUNS).seconds


@functools.cache
def convolution_seconds(conv: Convolution, kind: str, precision: str) -> float:
    """Measure the fastest plan's time."""
    layout, dtype = PRECISIONS[precision]
    others, tf32 = dtype == "float32", precision != "float32"
    graph = ConvolutionGraph(conv, kind, layout, dtype, tf32=tf32, modes=MODES, others=others)
    return _fastest(graph, operands.random_sets(conv, kind, layout, dtype, RUNS))


@functools.cache
def convolution_with_bias_seconds(conv: Convolution, layout: str, dtype: str, relu: bool) -> float:
    """Return the fastest plan's time of a forward pass with bias, and ReLU if it follows, in one graph."""
    others = dtype == "float32"
    graph = ConvolutionGraph(conv, "forward", layout, dtype, bias=True, relu=relu, modes=MODES, others=others)
    sets = operands.random_sets(conv, "forward", layout, dtype, RUNS)
    return _fastest(graph, sets, operands.random_bias(conv, dtype))


def _fastest(graph: ConvolutionGraph, sets: Sequence[operands.Arrays], bias: Any = None) -> float:
    """Time every plan once, then the fastest in turns."""
    timed = time_plans(graph, sets, bias, runs=1, finalists=0, checked=False)
    arguments = [arrays if bias is None else (*arrays, bias) for arrays in sets]
    leading = [row["id"] for row in timed.fastest(FINALISTS)]
    candidates = {str(id_): Candidate(timed.launchers[id_], arguments) for id_ in leading}
    timings = time_together(candidates, rounds=2, runs=RUNS, warmup=1)
    return min(timing.seconds for timing in timings.values())


def _array(nchw: tuple[int, ...], layout: str, dtype: str) -> Any:
    n, c, h, w = nchw
    shape = nchw if layout == "NCHW" else (n, h, w, c)
    return cupy_on_gpu().random.uniform(-1, 1, shape, dtype=np.float32).astype(dtype, copy=False)


@functools.cache
def other_seconds(layer: LayerGroup, layout: str, dtype: str) -> dict[str, float]:
    """Measure a layer that is no convolution, by pass: `inference`, `forward` (of training) and `backward`."""
    kind, nchw = layer.kind, layer.nchw
    size = math.prod(nchw) * np.dtype(dtype).itemsize

    def timed(function: Callable[..., None], *shapes: tuple[int, ...]) -> float:
        return seconds_of(function, lambda: tuple(_array(shape, layout, dtype) for shape in shapes), len(shapes) * size)

    if kind == "fully connected":
        return _fully_connected(*nchw[:2], layer.outputs, dtype)
    if kind == "batch norm":
        with layers.BatchNorm(nchw, layout, dtype) as norm:
            norm.forward(_array(nchw, layout, dtype), _array(nchw, layout, dtype))
            modes = layers.SPATIAL, layers.SPATIAL_PERSISTENT
            return {
                "inference": min(timed(functools.partial(norm.infer, mode=mode), nchw, nchw) for mode in modes),
                "forward": timed(norm.forward, nchw, nchw),
                "backward": timed(norm.backward, *(nchw,) * 3),
            }
    if kind == "ReLU":
        with layers.Relu(nchw, layout, dtype) as relu:
            forward = timed(relu.forward, *(nchw,) * 2)
            return {"inference": forward, "forward": forward, "backward": timed(relu.backward, *(nchw,) * 4)}
    if kind == "addition":
        with layers.Add(nchw, layout, dtype) as add:
            forward = timed(add.forward, *(nchw,) * 3)
            # Backward, a block's two branches give a gradient each for their common input: one sum again.
            return {"inference": forward, "forward": forward, "backward": forward}
    if layer.window is not None:
        with layers.Pooling(nchw, layout, dtype, *layer.window) as pooling:
            y = pooling.y_nchw
            forward = timed(pooling.forward, nchw, y)
            return {"inference": forward, "forward": forward, "backward": timed(pooling.backward, nchw, y, y, nchw)}
    if kind == "softmax":
        with layers.Softmax(nchw, layout, "float32") as softmax:
            arrays = lambda: (_array(nchw, "NCHW", "float32"), _array(nchw, "NCHW", "float32"))  # noqa: E731
            forward = seconds_of(softmax.forward, arrays, 2 * size)
            # The gradient is the probabilities less 1 for the right class: as much to read and to write.
            return {"inference": forward, "forward": forward, "backward": forward}
    raise ValueError(f"there is no kind of layer {kind!r}; choose one of {', '.join(networks.KINDS)}")


def _fully_connected(batch: int, inputs: int, outputs: int, dtype: str) -> dict[str, float]:
    cupy = cupy_on_gpu()

    def random(*shape: int) -> Any:
        return cupy.random.uniform(-1, 1, shape, dtype=np.float32).astype(dtype)

    def sets() -> tuple[Any, ...]:
        x, w, dy = random(batch, inputs), random(inputs, outputs), random(batch, outputs)
        return x, w, dy, cupy.empty_like(dy), cupy.empty_like(x), cupy.empty_like(w)

    def forward(x: Any, w: Any, dy: Any, y: Any, dx: Any, dw: Any) -> None:
        cupy.matmul(x, w, out=y)

    def backward(x: Any, w: Any, dy: Any, y: Any, dx: Any, dw: Any) -> None:
        cupy.matmul(dy, w.T, out=dx)
        cupy.matmul(x.T, dy, out=dw)

    size = inputs * outputs * np.dtype(dtype).itemsize
    once = seconds_of(forward, sets, size)
    return {"inference": once, "forward": once, "backward": seconds_of(backward, sets, 2 * size)}


@functools.cache
def update_seconds(count: int, dtype: str) -> float:
    """Measure a step of gradient descent with momentum: weights and momentum float32, gradients of `dtype`."""
    cupy = cupy_on_gpu()
    code = f"#include <cuda_fp16.h>\nusing T = {'half' if dtype == 'float16' else 'float'};\n{_UPDATE}"
    function = cupy.RawModule(code=code).get_function("update")
    w, momentum = cupy.zeros(count, np.float32), cupy.zeros(count, np.float32)
    gradient, copy = cupy.zeros(count, dtype), cupy.zeros(count, dtype)
    blocks = 8 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    arguments = (blocks,), (256,), (w, momentum, gradient, copy, np.float32(1e-3), np.int64(count))
    return time_gpu(function, [arguments], runs=RUNS).seconds


def _rows(
    network: Sequence[LayerGroup], precision: str, training: bool
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the layers with their times, and the convolutions' time by pass."""
    layout, dtype = PRECISIONS[precision]
    rows, by_pass = [], dict.fromkeys(PASSES if training else PASSES[:1], 0.0)
    for layer in network:
        if layer.convolution is None:
            found = other_seconds(layer, layout, dtype)
            seconds = found["forward"] + found["backward"] if training else found["inference"]
        else:
            seconds = 0.0
            for kind in by_pass:
                if kind == "backward_data" and layer.convolution.c == 3:
                    continue  # nobody wants the gradient of the images
                one = convolution_seconds(layer.convolution, kind, precision)
                seconds += one
                by_pass[kind] += layer.count * one
        rows.append(_row(layer, seconds))
    if training:
        count = networks.parameters(network)
        rows.append(_row(LayerGroup(f"update of {count:,} weights", "update", (), 1), update_seconds(count, dtype)))
    return rows, by_pass


def _row(layer: LayerGroup, seconds: float) -> dict[str, Any]:
    return {"layer": layer.name, "kind": layer.kind, "seconds": seconds, "count": layer.count}


def _configuration(
    precision: str, mode: str, batch: int, rows: list[dict[str, Any]], by_pass: dict[str, float]
) -> dict[str, Any]:
    total = sum(row["seconds"] * row["count"] for row in rows)
    convolution = sum(row["seconds"] * row["count"] for row in rows if row["kind"] == "convolution")
    return {
        "precision": precision,
        "mode": mode,
        "batch": batch,
        "seconds": total,
        "images_per_second": batch / total,
        "convolution_share": convolution / total,
        "convolution_seconds": by_pass,
        "layers": rows if batch == BATCH else by_kind(rows),
    }


def by_kind(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the layers of each kind in one row, their time in sum."""
    seconds: dict[str, float] = {}
    for row in rows:
        seconds[row["kind"]] = seconds.get(row["kind"], 0.0) + row["seconds"] * row["count"]
    return [{"layer": f"all of {kind}", "kind": kind, "seconds": total, "count": 1} for kind, total in seconds.items()]


def configurations() -> dict[str, Any]:
    """Measure training at batch 32 and inference at 1 and 32, in each precision.

    `configurations`: each with its `layers`, a list of {layer, kind, seconds, count}: seconds of one layer, of all its
    passes; at batch 1 a row for each kind.
    """
    found = []
    for precision in PRECISIONS:
        for mode, batch in (("training", BATCH), ("inference", BATCH), ("inference", 1)):
            rows, by_pass = _rows(networks.resnet50(batch), precision, mode == "training")
            found.append(_configuration(precision, mode, batch, rows, by_pass))
    return {"cudnn": version(), "configurations": found}


def older() -> dict[str, Any]:
    """Measure training and inference of VGG-16 and AlexNet at batch 32 and 128, in float32 and on tensor cores.

    As `configurations`, each with its `network`, and a row for each kind of layer.
    """
    found = []
    for name, layers_of in networks.OLDER.items():
        for precision, mode, batch in product(("float32", "mixed"), ("training", "inference"), (BATCH, 4 * BATCH)):
            rows, by_pass = _rows(layers_of(batch), precision, mode == "training")
            one = _configuration(precision, mode, batch, by_kind(rows), by_pass)
            found.append({"network": name, **one})
    return {"cudnn": version(), "configurations": found}


def folded() -> dict[str, Any]:
    """Measure inference on tensor cores with batch norm folded into the convolutions, and ReLU fused where it follows
    one."""
    found = []
    for precision, (layout, dtype) in PRECISIONS.items():
        if precision == "float32":
            continue
        for batch in (BATCH, 1):
            rows = [_row(layer, _folded_seconds(layer, layout, dtype)) for layer in networks.folded_resnet50(batch)]
            by_pass = {"forward": sum(row["seconds"] * row["count"] for row in rows if row["kind"] == "convolution")}
            found.append(_configuration(precision, "inference, folded", batch, rows, by_pass))
    return {"cudnn": version(), "configurations": found}


def _folded_seconds(layer: LayerGroup, layout: str, dtype: str) -> float:
    if layer.convolution is None:
        return other_seconds(layer, layout, dtype)["inference"]
    return convolution_with_bias_seconds(layer.convolution, layout, dtype, layer.relu)
