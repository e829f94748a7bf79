"""ONNX Runtime as a peer on the CPU: what its own optimiser makes of a graph, and what it computes.

Microsoft's runtime has passes of its own. They run when a session begins, and it can write the graph that they leave.
"""

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx


@dataclass(frozen=True)
class Peer:
    """`before`, `after`: nodes of each operator that its optimiser got and left. `outputs`: of the sample inputs."""

    before: Counter[str]
    after: Counter[str]
    outputs: np.ndarray


def run(model: onnx.ModelProto, images: np.ndarray) -> Peer:
    """Optimise a model and run it. `images`: (batch, *shape), float32. ImportError where onnxruntime is missing.

    Passes that suit one kind of CPU alone are left out, so that every machine gives the same graph.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 3  # errors
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "optimised.onnx"
        options.optimized_model_filepath = str(written)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        left = onnx.load(str(written))
    (outputs,) = session.run(None, {session.get_inputs()[0].name: images})
    return Peer(_operators(model), _operators(left), outputs)


def _operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)
