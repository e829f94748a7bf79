"""Graphs from and to other formats: Keras models and ONNX files."""
