"""From texture coordinates to texels and their weights, as the CUDA Programming Guide defines it (Texture Fetching).

What the guide leaves open is an H100's (2026-11-23): the fraction of a coordinate becomes a weight of 8 bits by
rounding to the nearest, products of weights are rounded so, too, and filtered integers come in steps of 1/65535 or
1/32767, halves as halves. There some 4 % of the fetches from volumes differ by 1/256 of a weight, and 1 to 5 % of
filtered integers and halves by a step (of signed 8-bit integers 19 %). Coordinates are computed in float64, without the
rounding that a GPU applies before.
"""

import numpy as np

_STEPS = 256.0  # weights are multiples of 1/256
_FARTHEST = 1 << 40  # texels; farther coordinates stay there


Place = tuple[np.ndarray, np.ndarray]  # along an axis: the texel of each lane, and whether it lies in the array


def nearest(coordinate: np.ndarray, size: int, mode: str, normalized: bool) -> Place:
    """Return the texel of each coordinate along an axis of `size` texels, and whether it lies in the array.

    `coordinate`: float32. `mode`: see `texels.ADDRESS_MODES`. Only where the mode is "border" can texels lie outside.
    """
    return _texel(np.floor(_in_texels(coordinate, size, mode, normalized)), size, mode)


def neighbours(
    coordinate: np.ndarray, size: int, mode: str, normalized: bool
) -> tuple[tuple[Place, Place], np.ndarray]:
    """Return the two texels between which each coordinate lies, as `nearest` does, and the weight of the second."""
    place = _in_texels(coordinate, size, mode, normalized) - 0.5
    first = np.floor(place)
    weight = _rounded(place - first)
    return (_texel(first, size, mode), _texel(first + 1, size, mode)), weight


def corner_weights(parts: list[np.ndarray]) -> dict[tuple[int, ...], np.ndarray]:
    """Return weights of the corners between texels, by side along each axis. `parts`: weights of the second side, one
    per axis. They are multiples of 1/256 and add up to 1."""
    if len(parts) == 1:
        return {(0,): 1 - parts[0], (1,): parts[0]}
    if len(parts) == 3:  # depth comes before height
        planes = _split(parts[0], parts[2])
        found: dict[tuple[int, ...], np.ndarray] = {}
        for (x, z), weight in planes.items():
            upper = _rounded(weight * parts[1])
            found[x, 0, z], found[x, 1, z] = weight - upper, upper
        return found
    return _split(*parts)


def _split(a: np.ndarray, b: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    both = _rounded(a * b)
    return {(0, 0): 1 - a - b + both, (1, 0): a - both, (0, 1): b - both, (1, 1): both}


def _rounded(weight: np.ndarray) -> np.ndarray:
    return np.floor(weight * _STEPS + 0.5) / _STEPS


def unrounded(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return what `as_float` gives for texels of this type, before rounding to float32; other values as they are."""
    exact = value.astype(np.float64)
    if dtype.kind == "f" or dtype.itemsize == 4:
        return exact
    largest = np.iinfo(dtype).max
    whole = np.rint(exact * largest)
    return np.where(np.abs(exact * largest - whole) < 0.01, whole / largest, exact)


def filtered(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a sum of weighted texels of this type, with the precision of the filter."""
    if dtype.kind == "f":
        return value.astype(np.float16).astype(np.float32) if dtype.itemsize == 2 else value.astype(np.float32)
    steps = 65535.0 if dtype.kind == "u" else 32767.0
    return (np.floor(value * steps + 0.5) / steps).astype(np.float32)


def whole(coordinate: np.ndarray, size: int, mode: str) -> Place:
    """Read as `nearest` does, for integer coordinates, which count texels."""
    return _texel(coordinate, size, mode if mode == "border" else "clamp")


def as_float(values: np.ndarray) -> np.ndarray:
    """Return channels as float32: integers of 8 and 16 bits as parts of the largest, from 0 or -1 to 1."""
    if values.dtype.kind == "f" or values.dtype.itemsize == 4:
        return values.astype(np.float32)
    largest = np.iinfo(values.dtype).max
    return np.maximum(values.astype(np.float64) / largest, -1).astype(np.float32)


def cube_face(s: np.ndarray, t: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the face of a cube map that a direction meets, and the normalised coordinates there (Cubemap Textures)."""
    x, y, z = (np.nan_to_num(np.asarray(c, np.float64)) for c in (s, t, r))
    along_x = (np.abs(x) >= np.abs(y)) & (np.abs(x) >= np.abs(z))
    along_y = ~along_x & (np.abs(y) >= np.abs(z))
    face = np.select([along_x, along_y], [np.where(x >= 0, 0, 1), np.where(y >= 0, 2, 3)], np.where(z >= 0, 4, 5))
    major = np.abs(np.select([along_x, along_y], [x, y], z))
    u = np.choose(face, [-z, z, x, x, x, -x])
    v = np.choose(face, [-y, -y, z, -z, -y, -y])
    major = np.where(major == 0, 1, major)
    return face, (u / major + 1) / 2, (v / major + 1) / 2


def _in_texels(coordinate: np.ndarray, size: int, mode: str, normalized: bool) -> np.ndarray:
    x = np.nan_to_num(np.asarray(coordinate, np.float64))
    if not normalized:  # only clamp and border there: the others become clamp
        return np.clip(x, 0, np.nextafter(size, 0)) if mode != "border" else np.clip(x, -_FARTHEST, _FARTHEST)
    if mode == "wrap":
        x = x - np.floor(x)
    elif mode == "mirror":
        turns = np.floor(x)
        x = np.where(turns % 2 == 0, x - turns, 1 - (x - turns))
    elif mode == "clamp":
        x = np.clip(x, 0, 1)
    x = x * size
    return np.clip(x, -_FARTHEST, _FARTHEST) if mode == "border" else np.clip(x, 0, np.nextafter(size, 0))


def _texel(number: np.ndarray, size: int, mode: str) -> Place:
    number = np.asarray(number, np.int64)
    if mode == "border":
        inside = (number >= 0) & (number < size)
        return np.where(inside, number, 0), inside
    number = number % size if mode == "wrap" else np.clip(number, 0, size - 1)
    return number, np.ones(number.shape, bool)
