"""The layers beside the convolution in NumPy, float64: what pooling, softmax and LRN are compared with."""

from __future__ import annotations

import numpy as np

from kernels.convolution.geometry import Convolution


def maximum(x: np.ndarray, conv: Convolution, layout: str) -> tuple[np.ndarray, np.ndarray]:
    """The largest element of each window, in x's type, and its place r · S + s, uint8; the first of equal ones.

    `conv`: the windows, as `pooling.windows` gives them.
    """
    windows = _windows(_nchw(x, layout), conv, -np.inf)
    # A window's elements outside the image are never the first among equals.
    inside = _windows(np.ones(conv.x_shape()), conv, 0) > 0
    largest = windows.max(axis=-1)
    places = ((windows == largest[..., None]) & inside).argmax(axis=-1)
    return _as_layout(largest.astype(x.dtype), layout), _as_layout(places.astype(np.uint8), layout)


def maximum_backward(dy: np.ndarray, places: np.ndarray, conv: Convolution, layout: str) -> np.ndarray:
    """The gradient of x: each element of dy goes to its place."""
    chosen = np.arange(conv.r * conv.s) == _nchw(places, layout)[..., None]
    return _scattered(chosen * _nchw(dy, layout).astype(np.float64)[..., None], conv, layout)


def average(x: np.ndarray, conv: Convolution, layout: str, count_padding: bool) -> np.ndarray:
    """The mean of each window; `count_padding`: of its elements in the padding, too."""
    return _as_layout(_windows(_nchw(x, layout), conv, 0).sum(axis=-1) / _counts(conv, count_padding), layout)


def average_backward(dy: np.ndarray, conv: Convolution, layout: str, count_padding: bool) -> np.ndarray:
    """The gradient of x: each element gets its share of each window's."""
    shares = _nchw(dy, layout) / _counts(conv, count_padding)
    return _scattered(np.repeat(shares[..., None], conv.r * conv.s, axis=-1), conv, layout)


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    exponentials = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def softmax_backward(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """The gradient of x."""
    y, dy = y.astype(np.float64), dy.astype(np.float64)
    return y * (dy - (y * dy).sum(axis=-1, keepdims=True))


def lrn(x: np.ndarray, layout: str, size: int, alpha: float, beta: float, k: float) -> tuple[np.ndarray, np.ndarray]:
    """y, and the sums k + alpha · Σ x²."""
    scale = k + alpha * _over_channels(x.astype(np.float64) ** 2, layout, size)
    return x * scale**-beta, scale


def lrn_backward(
    x: np.ndarray, y: np.ndarray, dy: np.ndarray, scale: np.ndarray, layout: str, size: int, alpha: float, beta: float
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of x, and the sum of its terms' absolute values."""
    x, y, dy = (array.astype(np.float64) for array in (x, y, dy))
    own, factor = dy * scale**-beta, 2 * alpha * beta * x
    exact = own - factor * _over_channels(dy * y / scale, layout, size)
    return exact, abs(own) + abs(factor) * _over_channels(abs(dy * y) / scale, layout, size)


def _over_channels(values: np.ndarray, layout: str, size: int) -> np.ndarray:
    """Of each channel the sum over `size` channels around it."""
    axis = 1 if layout == "NCHW" else 3
    half, count = size // 2, values.shape[axis]
    padded = np.pad(values, [(half, half) if i == axis else (0, 0) for i in range(4)])
    return sum(np.take(padded, range(j, j + count), axis) for j in range(size))


def _windows(x: np.ndarray, conv: Convolution, outside: float) -> np.ndarray:
    """N × C × P × Q × (R · S), float64; `outside`: what padding holds."""
    (top, left), shape = conv.padding, (conv.n, conv.c, conv.p, conv.q, conv.r * conv.s)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, top), (left, left)), constant_values=outside)
    found = np.empty(shape)
    for place, (rows, columns) in enumerate(_places(conv)):
        found[..., place] = padded[:, :, rows, columns]
    return found


def _scattered(windows: np.ndarray, conv: Convolution, layout: str) -> np.ndarray:
    """The sum over all windows of what they hold for each element of x."""
    (top, left), (height, width) = conv.padding, conv.room
    padded = np.zeros((conv.n, conv.c, height, width))
    for place, (rows, columns) in enumerate(_places(conv)):
        padded[:, :, rows, columns] += windows[..., place]
    return _as_layout(padded[:, :, top : top + conv.h, left : left + conv.w], layout)


def _places(conv: Convolution) -> list[tuple[slice, slice]]:
    """Of each place in a window the rows and columns of the padded image that meet it."""
    (down, across), (p, q) = conv.stride, (conv.p, conv.q)
    return [
        (slice(r, r + down * (p - 1) + 1, down), slice(s, s + across * (q - 1) + 1, across))
        for r in range(conv.r)
        for s in range(conv.s)
    ]


def _counts(conv: Convolution, count_padding: bool) -> np.ndarray:
    inside = _windows(np.ones(conv.x_shape()), conv, 1 if count_padding else 0)
    return inside.sum(axis=-1)


def _nchw(array: np.ndarray, layout: str) -> np.ndarray:
    return array if layout == "NCHW" else array.transpose(0, 3, 1, 2)


def _as_layout(array: np.ndarray, layout: str) -> np.ndarray:
    return array if layout == "NCHW" else np.ascontiguousarray(array.transpose(0, 2, 3, 1))
