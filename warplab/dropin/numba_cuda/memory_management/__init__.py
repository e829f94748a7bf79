"""What the drop-in has of `numba.cuda.memory_management`: the count of what kernels allocate."""

from warplab.dropin.numba_cuda.memory_management.nrt import rtsys

__all__ = ["rtsys"]
