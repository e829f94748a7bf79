"""What the drop-in has of `numba.cuda.kernels`: functions of the host that Numba runs kernels for."""
