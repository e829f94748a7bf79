"""The index map of im2col, one image and square sizes: what lesson 06 asks its reader to write, for both sides.

`place` is plain Python; `cuda.jit(place, device=True)` makes of it what a kernel calls.
"""

from __future__ import annotations


def place(row: int, column: int, size: int, window: int, outputs: int, padding: int, stride: int) -> int:
    """The place in x, NCHW, of an element of the im2col matrix; −1 for a zero of the padding.

    `row`: (c · R + r) · S + s; `column`: p · Q + q. The image is `size` × `size`, a filter `window` × `window`, y
    `outputs` × `outputs`.
    """
    c, tap = divmod(row, window * window)
    r, s = divmod(tap, window)
    p, q = divmod(column, outputs)
    i, j = p * stride + r - padding, q * stride + s - padding
    return (c * size + i) * size + j if 0 <= i < size and 0 <= j < size else -1
