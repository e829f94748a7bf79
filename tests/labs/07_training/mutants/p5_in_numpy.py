# problem: loop
# loses: loop-traces
# reason: does not trace its step once(.|\n)*got +0 runs

import numpy as np


def train(x, t, start, rates):
    """Return the weights after a step with each rate."""
    weights = start.copy()
    for rate in rates:
        weights -= np.float32(rate * 2 / len(x)) * (x.T @ (x @ weights - t))
    return weights
