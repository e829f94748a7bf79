"""An LSTM layer by cuDNN's algorithms: per time step a product and a pointwise kernel, or one persistent kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.convolution.cudnn_library import CudnnError, version
from kernels.convolution.cudnn_rnn import ALGORITHMS, GATES, Lstm
from warplab.bench import random_inputs
from warplab.bench.timing import cupy_on_gpu, time_gpu

# (steps, batch, inputs, hidden): as in speech and translation of 2017, for one stream, and small for a large batch.
SIZES = ((50, 32, 512, 512), (50, 1, 256, 256), (100, 64, 128, 128))
FORMATS = (("float32", False), ("float32", True), ("float16", True))  # type, and whether tensor cores are allowed
RUNS = 5


def weights(inputs: int, hidden: int) -> tuple[np.ndarray, ...]:
    """w, u and the two biases, float64, from -1/√hidden to 1/√hidden, as frameworks begin."""
    generator, bound = random_inputs.generator(), 1 / math.sqrt(hidden)
    rows = GATES * hidden
    return tuple(generator.uniform(-bound, bound, shape) for shape in ((rows, inputs), (rows, hidden), rows, rows))


def exact_lstm(x: np.ndarray, w: np.ndarray, u: np.ndarray, bias_w: np.ndarray, bias_u: np.ndarray) -> np.ndarray:
    """y, float64, of shape (steps, batch, hidden), by the cell's definition; gates in cuDNN's order."""
    h = c = np.zeros((x.shape[1], u.shape[1]))
    y = []
    for step in x:
        i, f, g, o = np.split(step @ w.T + h @ u.T + bias_w + bias_u, GATES, axis=1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        y.append(h)
    return np.array(y)


def _sigmoid(value: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-value))


def lstm() -> dict[str, Any]:
    """`cases`: each with its sizes and `rows`, an algorithm each, that say `status` where it does not support them.

    `seconds`: of the forward pass of training; `backward_seconds`: of the gradients of x and of the weights.
    """
    cases = []
    for steps, batch, inputs, hidden in SIZES:
        given = weights(inputs, hidden)
        x = random_inputs.generator().uniform(-1, 1, (steps, batch, inputs))
        exact = exact_lstm(x, *given)
        rows, refused = [], []
        for dtype, tensor_cores in FORMATS:
            for algorithm in ALGORITHMS:
                about = {"algorithm": algorithm, "by": "cuDNN", "dtype": dtype, "tensor_cores": tensor_cores}
                try:
                    rows.append(about | _timed(algorithm, dtype, tensor_cores, x, given, exact))
                except CudnnError as error:
                    refused.append({**about, "status": str(error)})
        sizes = {"steps": steps, "batch": batch, "inputs": inputs, "hidden": hidden}
        cases.append({**sizes, "rows": rows, "refused": refused})
    return {"cudnn": version(), "cases": cases}


def _timed(
    algorithm: str, dtype: str, tensor_cores: bool, x: np.ndarray, given: tuple[np.ndarray, ...], exact: np.ndarray
) -> dict[str, Any]:
    cupy = cupy_on_gpu()
    steps, batch, inputs = x.shape
    arrays = [cupy.asarray(array.astype(dtype)) for array in (x, *given)]
    y, dx = cupy.full(exact.shape, np.nan, dtype), cupy.full(x.shape, np.nan, dtype)
    kinds = {"algorithm": algorithm, "dtype": dtype, "tensor_cores": tensor_cores, "training": True}
    with Lstm(steps, batch, inputs, exact.shape[2], **kinds) as layer:
        layer.set_weights(*arrays[1:])
        layer.forward(arrays[0], y)
        error = float(np.linalg.norm(y.get().astype(np.float64) - exact) / np.linalg.norm(exact))
        forward = time_gpu(layer.forward, [(arrays[0], y)], runs=RUNS).seconds
        backward = time_gpu(layer.backward, [(arrays[0], y, y, dx)], runs=RUNS).seconds
        return {
            "seconds": forward,
            "backward_seconds": backward,
            "workspace_bytes": layer.workspace_bytes,
            "reserve_bytes": layer.reserve_bytes,
            "relative_error": error,
        }
