"""NVIDIA's TensorRT on the same network, where its package `tensorrt` is installed; the course does not install it.

Not run yet: written from the documentation of TensorRT 10 (Builder, OnnxParser, IExecutionContext, EngineInspector). It
needs a GPU. (TensorRT 11 has no flag for FP16 any more.)
"""

import importlib
import importlib.util
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from warpcourse.bench import timing

PRECISIONS = ("float32", "float16")


def is_installed() -> bool:
    """Return whether Python finds a package `tensorrt`."""
    return importlib.util.find_spec("tensorrt") is not None


def layers(model: onnx.ModelProto, batch: int = 1) -> list[str]:
    """Return names of the layers that TensorRT's plan has, in order: what is left after its own fusions.

    RuntimeError, with the parser's messages, where TensorRT cannot read the model or build a plan.
    """
    trt = _tensorrt()
    inspector = _engine(model, batch, "float32").create_engine_inspector()
    described = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    return [one if isinstance(one, str) else one["Name"] for one in described["Layers"]]


def prepared(
    model: onnx.ModelProto, images: np.ndarray, precision: str = "float32"
) -> tuple[Callable[[], Any], Callable[[], np.ndarray]]:
    """Return (queue, result): what queues a run on CuPy's current stream, for a batch that is on the GPU; its output.

    `images`: (batch, *shape), float32. `precision`: of PRECISIONS; for "float16", layers may compute in it, and inputs
    and outputs stay float32. Raise ValueError for another one, RuntimeError as `layers` does.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"there is no precision {precision!r} here; choose one of {', '.join(PRECISIONS)}")
    cupy, engine = timing.cupy_on_gpu(), _engine(model, len(images), precision)
    context = engine.create_execution_context()
    given, result = engine.get_tensor_name(0), engine.get_tensor_name(1)
    x = cupy.asarray(images, np.float32)
    context.set_input_shape(given, x.shape)
    y = cupy.empty(tuple(context.get_tensor_shape(result)), np.float32)
    for name, array in ((given, x), (result, y)):
        context.set_tensor_address(name, array.data.ptr)

    def queue() -> None:
        if not context.execute_async_v3(cupy.cuda.get_current_stream().ptr):
            raise RuntimeError("TensorRT did not queue the run; its log says why")

    def output() -> np.ndarray:
        queue()
        cupy.cuda.get_current_stream().synchronize()
        return y.get()

    # The context knows addresses only: x must live as long as it does.
    queue.arrays = (x, y)  # type: ignore[attr-defined]
    return queue, output


def _tensorrt() -> Any:
    try:
        return importlib.import_module("tensorrt")
    except ImportError as missing:
        raise RuntimeError("tensorrt is not installed; install NVIDIA's package of that name, version 10") from missing


def _engine(model: onnx.ModelProto, batch: int, precision: str) -> Any:
    """Build TensorRT's engine for one batch size. `model`: with one input and one output."""
    trt = _tensorrt()
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network, config = builder.create_network(0), builder.create_builder_config()
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(model.SerializeToString()):
        raise RuntimeError("; ".join(str(parser.get_error(i)) for i in range(parser.num_errors)))
    if precision == "float16":
        config.set_flag(trt.BuilderFlag.FP16)
    else:
        config.clear_flag(trt.BuilderFlag.TF32)
    profile, image = builder.create_optimization_profile(), network.get_input(0)
    shape = (batch, *tuple(image.shape)[1:])
    profile.set_shape(image.name, shape, shape, shape)
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise RuntimeError("TensorRT built no plan; its log says why")
    return trt.Runtime(logger).deserialize_cuda_engine(plan)
