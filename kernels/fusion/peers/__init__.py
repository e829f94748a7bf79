"""Other engines on the same network: cuDNN, ONNX Runtime, PyTorch and TensorRT, each where it is installed."""
