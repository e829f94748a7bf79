"""NVIDIA's TensorRT on the same network, where its package `tensorrt` is installed; the course does not install it.

Not run yet: written from the documentation of TensorRT 10 (Builder, OnnxParser, EngineInspector). It needs a GPU.
"""

from __future__ import annotations

import importlib.util
import json

import onnx


def is_installed() -> bool:
    """Whether Python finds a package `tensorrt`."""
    return importlib.util.find_spec("tensorrt") is not None


def layers(model: onnx.ModelProto, batch: int = 1) -> list[str]:
    """Names of the layers that TensorRT's plan has, in order: what is left after its own fusions.

    RuntimeError, with the parser's messages, where TensorRT cannot read the model or build a plan.
    """
    import tensorrt as trt  # type: ignore[import-not-found, unused-ignore]

    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network, config = builder.create_network(0), builder.create_builder_config()
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(model.SerializeToString()):
        raise RuntimeError("; ".join(str(parser.get_error(i)) for i in range(parser.num_errors)))
    profile, image = builder.create_optimization_profile(), network.get_input(0)
    shape = (batch, *tuple(image.shape)[1:])
    profile.set_shape(image.name, shape, shape, shape)
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise RuntimeError("TensorRT built no plan; its log says why")
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    return [one if isinstance(one, str) else one["Name"] for one in json.loads(text)["Layers"]]
