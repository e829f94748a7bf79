"""bias + GELU in NumPy, in the precision of its arguments: what the kernels are checked against."""

import math

import numpy as np

SCALE, CUBIC = math.sqrt(2 / math.pi), 0.044715  # Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016)


def gelu(z: np.ndarray) -> np.ndarray:
    """Return z/2 · (1 + tanh(sqrt(2/π) · (z + 0.044715 z³))), any shape."""
    return z / 2 * (1 + np.tanh(SCALE * (z + CUBIC * z**3)))


def gelu_slope(z: np.ndarray) -> np.ndarray:
    """Return the derivative of `gelu` at z, any shape."""
    t = np.tanh(SCALE * (z + CUBIC * z**3))
    return (1 + t) / 2 + z / 2 * (1 - t * t) * SCALE * (1 + 3 * CUBIC * z * z)


def backward(x: np.ndarray, bias: np.ndarray, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (dx, dbias) of y = gelu(x + bias), for x and dy of shape (rows, columns) and bias of (columns,)."""
    dx = dy * gelu_slope(x + bias)
    return dx, dx.sum(axis=0)
