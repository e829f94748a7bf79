"""What the drop-in has of `numba.cuda.cudadrv`: devices, their arrays, streams and events."""
