"""What Triton Inference Server runs: an engine of this lab under its Python backend.

`triton_repository` copies this file into a model repository as 1/model.py. Triton imports it in a process of its own,
which has `triton_python_backend_utils`, and must have this course (PYTHONPATH). Triton has formed the batch already:
`execute` gets its requests, each with one sample or more, and answers every one of them.
Source: github.com/triton-inference-server/python_backend, README.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from kernels.serving.serve import engines

INPUT, OUTPUT = "samples", "predictions"


class TritonPythonModel:
    """The name that Triton looks for."""

    def initialize(self, args: dict[str, str]) -> None:
        """Make the engine that the configuration's parameters name."""
        parameters = json.loads(args["model_config"])["parameters"]
        options = json.loads(parameters["options"]["string_value"])
        self._engine = engines.make(parameters["engine"]["string_value"], **options)
        engines.warm_up(self._engine)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response for each request, in their order: its rows, or the reason why there are none."""
        given = [pb_utils.get_input_tensor_by_name(request, INPUT).as_numpy() for request in requests]
        refused = {i: _why_not(samples, self._engine.shape) for i, samples in enumerate(given)}
        good = [i for i, why in refused.items() if not why]
        responses = {i: _error(why) for i, why in refused.items() if why}
        if good:
            try:
                rows = engines.answer(self._engine, np.concatenate([given[i] for i in good])).astype(np.float32)
                rows = rows.reshape(len(rows), *(rows.shape[1:] or (1,)))  # Triton knows no shape without extents
            except Exception as error:
                responses |= {i: _error(f"the engine failed: {error}") for i in good}
            else:
                ends = np.cumsum([len(given[i]) for i in good])
                for i, part in zip(good, np.split(rows, ends[:-1]), strict=True):
                    responses[i] = pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor(OUTPUT, part)])
        return [responses[i] for i in range(len(requests))]

    def finalize(self) -> None:
        """Close the engine, as Triton unloads the model."""
        engines.close(self._engine)


def _why_not(samples: np.ndarray, shape: tuple[int, ...]) -> str:
    """Say what is wrong with the samples; "" if nothing is. Triton has checked type and shape, not the numbers."""
    if samples.shape[1:] != shape:
        return f"{INPUT} has the shape {samples.shape}; it must be (samples, {', '.join(map(str, shape))})"
    return "" if np.isfinite(samples).all() else f"{INPUT} holds numbers that are not finite"


def _error(why: str) -> Any:
    return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(why))
