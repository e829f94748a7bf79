"""Arrays and kernels of CuPy on the simulator; the modules are named as in `cupy._core`."""
