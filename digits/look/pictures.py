"""Arrays as small pictures: activations, filters and saliency to PNG.

Numbers are drawn in cividis, from dark blue over grey to bright yellow: its brightness rises with the number, for any
kind of colour vision and in print. Where a value may be negative, 0 is the grey in the middle. What is no number is
drawn red, and crossed out if nothing else is there. Each value is one pixel: the page enlarges them, edges kept.
"""

import functools

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from digits.tasks import drawing

NOT_A_NUMBER = (200, 0, 60)
FOR, AGAINST = (230, 120, 0), (0, 90, 200)  # orange and blue, over a grey image
COLUMNS = 32  # cells in a row of a drawn vector

Limits = tuple[float, float]


def limits_of(values: np.ndarray) -> Limits:
    """Return the values of the darkest and the brightest colour: from 0 where none is negative, else even about 0."""
    finite = values[np.isfinite(values)]
    most = float(np.abs(finite).max(initial=0.0)) or 1.0
    return (-most if (finite < 0).any() else 0.0), most


def image_png(image: np.ndarray) -> bytes:
    """Return a uint8 image of shape (h, w, 1 or 3) as it is."""
    return _png(np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image)


def heat_png(values: np.ndarray) -> bytes:
    """Return numbers of shape (h, w), a pixel each."""
    return _png(_coloured(values, limits_of(values)))


def tiles_png(maps: np.ndarray, columns: int | None = None) -> bytes:
    """Return maps of shape (n, h, w) side by side in rows, all with the same limits, gaps of one pixel see-through."""
    limits = limits_of(maps)
    return _png(_grid([_coloured(one, limits) for one in maps], columns or _columns(maps.shape)))


def vector_png(values: np.ndarray) -> bytes:
    """Return numbers of shape (n,), a pixel each, in rows of 32, the first at the top left."""
    rows = -(-len(values) // COLUMNS)
    padded = np.full(rows * COLUMNS, 0.0, np.float32)
    padded[: len(values)] = values
    pixels = _opaque(_coloured(padded.reshape(rows, COLUMNS), limits_of(values)))
    pixels.reshape(-1, 4)[len(values) :, 3] = 0
    return _png(pixels[:, : len(values)])


def filters_png(tiles: np.ndarray) -> bytes:
    """Return weights (filters, inputs, h, w): a row per filter with a tile per input, colour tiles for 3 inputs.

    Filters of a single input are laid out in rows. Three inputs are drawn as red, green and blue, mid-grey being 0.
    """
    count, inputs, height, width = tiles.shape
    if inputs == 1:
        return tiles_png(tiles[:, 0])
    if inputs == 3:
        most = limits_of(tiles)[1]
        shares = np.nan_to_num((tiles / most + 1) / 2)
        colours = (np.clip(shares, 0, 1) * 255).round().astype(np.uint8).transpose(0, 2, 3, 1)
        return _png(_grid(list(colours), _columns((count, height, width))))
    return tiles_png(tiles.reshape(count * inputs, height, width), columns=inputs)


def overlay_png(image: np.ndarray, values: np.ndarray) -> bytes:
    """Return numbers (h, w) over a uint8 image (h, w, c): orange for, blue against, the stronger the denser."""
    grey = image.mean(axis=2, keepdims=True).repeat(3, axis=2)
    _, most = limits_of(values)
    shown = np.nan_to_num(values)[:, :, None]
    ink = np.where(shown > 0, np.array(FOR, np.float64), np.array(AGAINST, np.float64))
    share = np.minimum(np.abs(shown) / most, 1.0) * 0.85
    return _png((grey * (1 - share) + ink * share).round().astype(np.uint8))


@functools.cache
def _colours() -> NDArray[np.uint8]:
    from matplotlib import colormaps

    return (colormaps["cividis"](np.arange(256))[:, :3] * 255).round().astype(np.uint8)


def _coloured(values: np.ndarray, limits: Limits) -> NDArray[np.uint8]:
    least, most = limits
    known = np.isfinite(values)
    share = (np.where(known, values, least) - least) / ((most - least) or 1.0)
    pixels = _colours()[(np.clip(share, 0, 1) * 255).round().astype(np.uint8)]
    pixels[~known] = NOT_A_NUMBER
    if not known.any():
        rows, columns = values.shape
        for i in range(max(rows, columns)):
            row, column = i * rows // max(rows, columns), i * columns // max(rows, columns)
            pixels[row, column] = pixels[row, columns - 1 - column] = 255
    return pixels


def _columns(shape: tuple[int, ...]) -> int:
    """Return how many tiles in a row make the picture about twice as wide as it is high."""
    count, height, width = shape
    return max(1, min(count, round((2 * count * (height + 1) / (width + 1)) ** 0.5)))


def _grid(tiles: list[np.ndarray], columns: int) -> NDArray[np.uint8]:
    height, width = tiles[0].shape[:2]
    rows = -(-len(tiles) // columns)
    sheet = np.zeros((rows * (height + 1) - 1, columns * (width + 1) - 1, 4), np.uint8)
    for i, tile in enumerate(tiles):
        top, left = (i // columns) * (height + 1), (i % columns) * (width + 1)
        sheet[top : top + height, left : left + width] = _opaque(tile)
    return sheet


def _opaque(pixels: np.ndarray) -> NDArray[np.uint8]:
    return np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255, np.uint8)], axis=2)


def _png(pixels: np.ndarray) -> bytes:
    return drawing.png(Image.fromarray(np.ascontiguousarray(pixels)))
