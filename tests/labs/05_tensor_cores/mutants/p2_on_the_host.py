# problem: linear
# loses: linear-right, linear-tensor, linear-reuse
# reason: is a Python function

import numpy as np


def linear(x, w, y, rows, outputs, inputs):
    y[:] = np.asarray(x, float) @ np.asarray(w, float).T
