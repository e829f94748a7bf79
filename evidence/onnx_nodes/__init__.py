"""The onnx package's tests of single operators, through lab 09's importer and engine."""
