"""What runs through which front end: others' programs for Triton and numba-cuda-mlir, the labs' kernels, CuTe's PTX."""
