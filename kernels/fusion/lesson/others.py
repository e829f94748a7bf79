"""Other optimisers, as the lesson's last section takes them: graphs as ONNX, ONNX Runtime, and TensorRT."""

from kernels.fusion.exchange.onnx_export import export_onnx
from kernels.fusion.exchange.onnx_import import UnsupportedOperator, import_onnx
from kernels.fusion.peers import on_onnxruntime, on_tensorrt

__all__ = ["UnsupportedOperator", "export_onnx", "import_onnx", "on_onnxruntime", "on_tensorrt"]
