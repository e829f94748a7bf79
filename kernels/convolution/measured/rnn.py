"""An LSTM layer by the lab's kernels and by cuDNN's algorithms: per time step a product and what follows it, in many
kernels or one, or all steps in one persistent kernel.
"""

import math
from typing import Any

import numpy as np

from kernels.convolution.beside import recurrent
from kernels.convolution.cudnn.library import CudnnError, version
from kernels.convolution.cudnn.rnn import ALGORITHMS, GATES, Lstm
from warpcourse.bench import random_inputs
from warpcourse.bench.timing import Candidate, cupy_on_gpu, time_gpu, time_together

# (steps, batch, inputs, hidden): as in speech and translation of 2017, for one stream, and small for a large batch.
SIZES = ((50, 32, 512, 512), (50, 1, 256, 256), (100, 64, 128, 128))
FORMATS = (("float32", False), ("float32", True), ("float16", True))  # type, and whether tensor cores are allowed
RUNS = 5
MOST_ERROR = {"float16": 2e-3, "float32": 1e-5}


def weights(inputs: int, hidden: int) -> tuple[np.ndarray, ...]:
    """Return w, u and the two biases, float64, from -1/√hidden to 1/√hidden, as frameworks begin."""
    generator, bound = random_inputs.generator(), 1 / math.sqrt(hidden)
    rows = GATES * hidden
    return tuple(generator.uniform(-bound, bound, shape) for shape in ((rows, inputs), (rows, hidden), rows, rows))


def lstm() -> dict[str, Any]:
    """Return `cases`: each with its sizes, `rows`, a method or an algorithm each, and what was `refused`, with its
    `status`.

    `seconds`: of the forward pass, of cuDNN that of training; `backward_seconds`: of the gradients of x and of the
    weights, which the lab's kernels do not compute: None.
    """
    cases = []
    for steps, batch, inputs, hidden in SIZES:
        x = random_inputs.generator().uniform(-1, 1, (steps, batch, inputs))
        given = weights(inputs, hidden)
        exact, _ = recurrent.reference(x, *given, *np.zeros((2, batch, hidden)))
        rows, refused = [], []
        for dtype in MOST_ERROR:
            for method in recurrent.METHODS:
                about = {"algorithm": method, "by": "lab", "dtype": dtype, "tensor_cores": dtype == "float16"}
                refusal = recurrent.persistent_refusal(batch, hidden, dtype) if method == "persistent" else ""
                if refusal:
                    refused.append({**about, "status": refusal})
                else:
                    rows.append(about | _ours(method, dtype, x, given, exact))
        for dtype, tensor_cores in FORMATS:
            for algorithm in ALGORITHMS:
                about = {"algorithm": algorithm, "by": "cuDNN", "dtype": dtype, "tensor_cores": tensor_cores}
                try:
                    rows.append(about | _cudnn(algorithm, dtype, tensor_cores, x, given, exact))
                except CudnnError as error:
                    refused.append({**about, "status": str(error)})
        sizes = {"steps": steps, "batch": batch, "inputs": inputs, "hidden": hidden}
        cases.append({**sizes, "rows": rows, "refused": refused})
    return {"cudnn": version(), "cases": cases}


def _ours(method: str, dtype: str, x: np.ndarray, given: tuple[np.ndarray, ...], exact: np.ndarray) -> dict[str, Any]:
    cupy = cupy_on_gpu()
    matrices = [cupy.asarray(array.astype(dtype)) for array in (x, *given[:2])]
    biases = [cupy.asarray(array.astype(np.float32)) for array in given[2:]]
    state = [cupy.zeros(exact.shape[1:], kind) for kind in (dtype, np.float32)]
    arguments = *matrices, *biases, *state
    y, _ = recurrent.lstm(*arguments, method=method)
    error = _error(y, exact)
    # One call at a time: the launches of all steps fill the queue of the stream.
    candidate = Candidate(lambda *arrays: recurrent.lstm(*arrays, method=method), [arguments])
    return {
        "seconds": time_together({"": candidate}, rounds=RUNS, runs=1, warmup=1)[""].seconds,
        "backward_seconds": None,
        "workspace_bytes": 0,
        "reserve_bytes": 0,
        "relative_error": error,
        "correct": error < MOST_ERROR[dtype],
    }


def _error(y: Any, exact: np.ndarray) -> float:
    return float(np.linalg.norm(y.get().astype(np.float64) - exact) / np.linalg.norm(exact))


def _cudnn(
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
        error = _error(y, exact)
        forward = time_gpu(layer.forward, [(arrays[0], y)], runs=RUNS).seconds
        backward = time_gpu(layer.backward, [(arrays[0], y, y, dx)], runs=RUNS).seconds
        return {
            "seconds": forward,
            "backward_seconds": backward,
            "workspace_bytes": layer.workspace_bytes,
            "reserve_bytes": layer.reserve_bytes,
            "relative_error": error,
        }
