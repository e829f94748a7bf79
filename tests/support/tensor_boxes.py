"""Boxes of tensor maps in plain Python: which element of a tensor lies where in shared memory. Written from the text of
the PTX ISA ("Tensors": tiled and im2col modes, swizzling), element by element, without the simulator.
"""

from __future__ import annotations

import itertools

import numpy as np


def tiled_box(tensor: np.ndarray, at, box, steps, fill=0) -> np.ndarray:
    """The elements of a box, flat, the innermost axis fastest. `tensor`: as NumPy has it; `at`, `box`, `steps`:
    innermost first, as in a tensor map."""
    axes = tensor.ndim
    counts = [box[0], *(-(-n // step) for n, step in zip(box[1:], steps[1:], strict=True))]
    found = []
    for index in itertools.product(*(range(n) for n in reversed(counts))):
        place = [at[axis] + index[axes - 1 - axis] * (steps[axis] if axis else 1) for axis in range(axes)]
        inside = all(0 <= p < n for p, n in zip(place, reversed(tensor.shape), strict=True))
        found.append(tensor[tuple(reversed(place))] if inside else fill)
    return np.array(found, tensor.dtype)


def visited_pixels(shape, at, lower, upper, steps, count):
    """The pixels that a column visits, as (spatial coordinates…, image): innermost first. `shape`: spatial, innermost
    first."""
    place, image, found = list(at[1:-1]), at[-1], []
    for _ in range(count):
        found.append((*place, image))
        axis = 0
        while axis < len(shape):
            place[axis] += steps[1 + axis]
            if place[axis] <= shape[axis] - 1 + upper[axis]:
                break
            place[axis] = lower[axis]
            axis += 1
        else:
            image += steps[-1]
    return found


def im2col_column(tensor: np.ndarray, at, lower, upper, channels, pixels, steps, offsets) -> np.ndarray:
    """The elements of a column, flat: channels of each visited pixel, which is read `offsets` further."""
    spatial = tuple(reversed(tensor.shape[1:-1]))
    found = []
    for *place, image in visited_pixels(spatial, at, lower, upper, steps, pixels):
        read = [p + o for p, o in zip(place, offsets, strict=True)]
        inside = 0 <= image < tensor.shape[0] and all(0 <= p < n for p, n in zip(read, spatial, strict=True))
        for channel in range(at[0], at[0] + channels):
            there = inside and 0 <= channel < tensor.shape[-1]
            found.append(tensor[(image, *reversed(read), channel)] if there else 0)
    return np.array(found, tensor.dtype)


def in_shared(flat: np.ndarray, span: int) -> np.ndarray:
    """The bytes of a box as they lie in shared memory from a multiple of 1024 on, for a swizzle of `span` bytes."""
    data = flat.view(np.uint8)
    result = np.empty_like(data)
    for piece in range(len(data) // 16):
        # A table of the PTX ISA: the pieces of a line are exchanged by the number of the line of 128 bytes.
        line, within = divmod(piece, 8)
        other = within ^ (line % (span // 16) if span else 0)
        result[16 * (8 * line + other) :][:16] = data[16 * piece :][:16]
    return result
