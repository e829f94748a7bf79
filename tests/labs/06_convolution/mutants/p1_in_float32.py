# problem: sizes
# loses: sizes-flops
# reason: flops returns the wrong value

import numpy as np


def outputs(length, window, padding, stride, dilation):
    """Return the number of outputs along one axis; at least one window fits."""
    return (length + 2 * padding - dilation * (window - 1) - 1) // stride + 1


def flops(n, c, h, w, k, r, s, padding, stride, dilation, groups):
    """Return the operations of a convolution; padding, stride and dilation are the same along both axes."""
    p, q = (outputs(length, window, padding, stride, dilation) for length, window in ((h, r), (w, s)))
    return float(np.float32(2.0 * n * k * p * q * (c // groups) * r * s))


def useful(n, c, h, w, k, r, s, padding, stride, dilation, groups):
    """Return the operations without the products with padding's zeros."""

    def inside(length, window):
        firsts = [o * stride - padding for o in range(outputs(length, window, padding, stride, dilation))]
        return sum(0 <= first + i * dilation < length for first in firsts for i in range(window))

    return 2 * n * k * (c // groups) * inside(h, r) * inside(w, s)
