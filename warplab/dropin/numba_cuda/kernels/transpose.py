"""`numba.cuda.kernels.transpose`."""

import numpy as np

from warplab.dropin.numba_cuda.cudadrv.devicearray import DeviceNDArray, from_host


def transpose(a, b: DeviceNDArray | None = None) -> DeviceNDArray:
    """Write the transpose of the matrix `a`, of host or device, to the device array `b` or to a new one; return that.

    It is copied on the host. Numba runs a kernel with a tile in shared memory for it. TypeError for a record.
    """
    matrix = from_host(a)
    if not isinstance(matrix, DeviceNDArray):
        raise TypeError(f"transpose() takes a matrix, not a {type(a).__name__}")
    if b is None:
        return matrix.transpose()
    b.copy_to_device(np.ascontiguousarray(matrix.copy_to_host().T))
    return b
