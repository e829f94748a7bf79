"""SiLU, forward and backward, storing and recomputing, in Numba; silu.cu explains the two pairs."""

import math

import numpy as np

from warplab import cuda

ONE = np.float32(1)


@cuda.jit(device=True)
def sigmoid(x):
    """Return 1 / (1 + exp(-x)) in float32."""
    return ONE / (ONE + math.exp(-x))


@cuda.jit(device=True)
def slope(x, s):
    """Return the derivative of x * sigmoid(x), given s = sigmoid(x)."""
    return s * (ONE + x * (ONE - s))


@cuda.jit
def silu(x, y):
    """Compute y = x * sigmoid(x)."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * sigmoid(x[i])


@cuda.jit
def silu_backward(dy, x, dx):
    """Compute dx = dy * silu'(x), with sigmoid(x) computed again."""
    i = cuda.grid(1)
    if i < x.size:
        dx[i] = dy[i] * slope(x[i], sigmoid(x[i]))


@cuda.jit
def silu_storing(x, y, s):
    """Compute s = sigmoid(x), kept for the backward pass; y = x * s."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]  # once: after a store to s the compiler would have to load it again
        sigma = sigmoid(v)
        s[i] = sigma
        y[i] = v * sigma


@cuda.jit
def silu_storing_backward(dy, x, s, dx):
    """Compute dx = dy * silu'(x), with sigmoid(x) read from s."""
    i = cuda.grid(1)
    if i < x.size:
        dx[i] = dy[i] * slope(x[i], s[i])
