"""The three passes in NumPy, float64, any padding, stride, dilation and groups: what kernels are compared with.

One window position (r, s) after the other, so that the code reads as the definition and memory stays small. Arrays of
CuPy give arrays of CuPy: NumPy's functions hand them on.
"""

import numpy as np

from kernels.convolution.definition.geometry import Convolution


def forward(x: np.ndarray, w: np.ndarray, conv: Convolution, layout: str = "NCHW") -> np.ndarray:
    """Return y, float64, of `conv.y_shape(layout)`. `x`, `w`: of the shapes that `conv` gives for the layout."""
    padded, filters = _padded(_nchw(x, layout), conv), _grouped_filters(w, conv, layout)
    y = _zeros(x, conv.n, conv.groups, conv.k // conv.groups, conv.p, conv.q)
    for r in range(conv.r):
        for s in range(conv.s):
            y += np.einsum("ngcpq,gkc->ngkpq", padded[_window(conv, r, s)], filters[..., r, s], optimize=True)
    return _as_layout(y.reshape(conv.y_shape()), layout)


def backward_data(dy: np.ndarray, w: np.ndarray, conv: Convolution, layout: str = "NCHW") -> np.ndarray:
    """Return the gradient of x, float64, of `conv.x_shape(layout)`, given that of y."""
    filters, grad = _grouped_filters(w, conv, layout), _grouped_output(dy, conv, layout)
    dx = _padded(_zeros(dy, *conv.x_shape()), conv)
    for r in range(conv.r):
        for s in range(conv.s):
            dx[_window(conv, r, s)] += np.einsum("ngkpq,gkc->ngcpq", grad, filters[..., r, s], optimize=True)
    top, left = conv.padding
    inner = dx[..., top : top + conv.h, left : left + conv.w]
    return _as_layout(inner.reshape(conv.x_shape()), layout)


def backward_filter(x: np.ndarray, dy: np.ndarray, conv: Convolution, layout: str = "NCHW") -> np.ndarray:
    """Return the gradient of w, float64, of `conv.w_shape(layout)`, given x and the gradient of y."""
    padded, grad = _padded(_nchw(x, layout), conv), _grouped_output(dy, conv, layout)
    dw = _zeros(x, conv.groups, conv.k // conv.groups, conv.c // conv.groups, conv.r, conv.s)
    for r in range(conv.r):
        for s in range(conv.s):
            dw[..., r, s] = np.einsum("ngkpq,ngcpq->gkc", grad, padded[_window(conv, r, s)], optimize=True)
    return _as_layout(dw.reshape(conv.w_shape()), layout)


def relative_error(result: np.ndarray, exact: np.ndarray) -> float:
    """Return ‖result − exact‖ / ‖exact‖, in the Frobenius norm."""
    exact = exact.astype(np.float64)
    return float(np.linalg.norm(result.astype(np.float64) - exact) / np.linalg.norm(exact))


def _zeros(like: np.ndarray, *shape: int) -> np.ndarray:
    return np.zeros_like(like, np.float64, shape=shape)


def _window(conv: Convolution, r: int, s: int) -> tuple:
    """Return the index of the padded image's elements that meet the filter's element (r, s), as P × Q."""
    rows, columns = (
        slice(start * dilation, start * dilation + stride * (count - 1) + 1, stride)
        for start, dilation, stride, count in zip((r, s), conv.dilation, conv.stride, (conv.p, conv.q), strict=True)
    )
    return ..., rows, columns


def _padded(x: np.ndarray, conv: Convolution) -> np.ndarray:
    """Return x as N × groups × channels × height × width, with its zeros around."""
    (top, left), grouped = conv.padding, x.reshape(conv.n, conv.groups, conv.c // conv.groups, conv.h, conv.w)
    return np.pad(grouped.astype(np.float64), ((0, 0), (0, 0), (0, 0), (top, top), (left, left)))


def _grouped_filters(w: np.ndarray, conv: Convolution, layout: str) -> np.ndarray:
    kcrs = _nchw(w, layout).astype(np.float64)
    return kcrs.reshape(conv.groups, conv.k // conv.groups, conv.c // conv.groups, conv.r, conv.s)


def _grouped_output(dy: np.ndarray, conv: Convolution, layout: str) -> np.ndarray:
    nkpq = _nchw(dy, layout).astype(np.float64)
    return nkpq.reshape(conv.n, conv.groups, conv.k // conv.groups, conv.p, conv.q)


def _nchw(array: np.ndarray, layout: str) -> np.ndarray:
    return array if layout == "NCHW" else array.transpose(0, 3, 1, 2)


def _as_layout(array: np.ndarray, layout: str) -> np.ndarray:
    return array if layout == "NCHW" else array.transpose(0, 2, 3, 1).copy()


def place(row: int, column: int, size: int, window: int, outputs: int, padding: int, stride: int) -> int:
    """Return the place in x, NCHW, of an element of the im2col matrix; −1 for a zero of the padding.

    Lesson 06 asks its reader to write it; `cuda.jit(place, device=True)` makes of it what a kernel calls.

    `row`: (c · R + r) · S + s; `column`: p · Q + q. The image is `size` × `size`, a filter `window` × `window`, y
    `outputs` × `outputs`.
    """
    c, tap = divmod(row, window * window)
    r, s = divmod(tap, window)
    p, q = divmod(column, outputs)
    i, j = p * stride + r - padding, q * stride + s - padding
    return (c * size + i) * size + j if 0 <= i < size and 0 <= j < size else -1
