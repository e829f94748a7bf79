# tries: answers with objects on which NumPy calls back: __array__, __array_interface__, __float__, buffers
# expects: graded 0 0 0 0
import ctypes

import numpy as np

there = {"shape": (1 << 30,), "typestr": "<f8", "data": (4096, True), "version": 3}


class Dispatched:
    dtype, shape, ndim, size = np.dtype(float), (5,), 1, 5
    __array_interface__ = __cuda_array_interface__ = there

    def __array__(self, dtype=None, copy=None):
        return np.arange(5.0) * 2

    def __float__(self):
        return 42.0

    def get(self):
        return self

    copy_to_host = tobytes = __index__ = __int__ = __bool__ = __len__ = lambda self: 5


def double(x):
    return Dispatched() if isinstance(x, np.ndarray) else (ctypes.c_double * 2)(x)


# %% answer
answer = Dispatched()
