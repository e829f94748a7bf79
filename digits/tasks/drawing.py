"""Scenes with boxes or masks drawn into them, as PNG.

What is right and what is wrong is told by the line and by a word, not by colour alone: a right box has a full line and
its class; a wrong one a full line and "not"; a true box that nothing found a dashed line and "missed".
"""

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from digits.tasks.average_precision import taken
from digits.tasks.boxes import CLASS, SCORE, WHERE

WIDTH = 256  # pixels of a drawn scene, about
RIGHT, WRONG, MISSED = (110, 235, 130), (255, 140, 60), (255, 255, 255)
# Colours of classes in masks, as far apart as ten can be; the class is written beside.
COLOURS = (
    (230, 25, 75),
    (60, 180, 75),
    (255, 225, 25),
    (67, 99, 216),
    (245, 130, 49),
    (145, 30, 180),
    (66, 212, 244),
    (240, 50, 230),
    (191, 239, 69),
    (250, 190, 212),
)
_FONT_SIZE = 14
_COVER = 0.55  # of a mask over the image
_SMALLEST_LABELLED = 12  # pixels of a patch; smaller ones stay without a word


def boxes(image: np.ndarray, truth: np.ndarray, found: np.ndarray | None, classes: Sequence[str]) -> bytes:
    """Return an image (h, w, 1 or 3), uint8, with its true boxes (n, 5) and detections (m, 6) as a PNG.

    `found` None: the true boxes alone, with their classes.
    """
    picture, factor = _enlarged(image)
    draw = ImageDraw.Draw(picture)
    if found is None:
        for box in truth:
            _box(draw, box[WHERE] * factor, RIGHT, classes[int(box[CLASS])])
        return png(picture)
    taken_by = taken(truth, found)
    for box, row in zip(found, taken_by, strict=True):
        name, percent = classes[int(box[CLASS])], f"{100 * box[SCORE]:.0f} %"
        text, colour = (f"{name}: {percent}", RIGHT) if row >= 0 else (f"not {name}: {percent}", WRONG)
        _box(draw, box[WHERE] * factor, colour, text)
    for row in set(range(len(truth))) - set(taken_by.tolist()):
        _missed(draw, truth[row, WHERE] * factor, f"missed {classes[int(truth[row, CLASS])]}")
    return png(picture)


def found(image: np.ndarray, detections: np.ndarray, classes: Sequence[str]) -> bytes:
    """Return an image (h, w, 1 or 3), uint8, that nobody labelled, with detections (m, 6) as a PNG."""
    picture, factor = _enlarged(image)
    draw = ImageDraw.Draw(picture)
    for box in detections:
        _box(draw, box[WHERE] * factor, RIGHT, f"{classes[int(box[CLASS])]}: {100 * box[SCORE]:.0f} %")
    return png(picture)


def mask(image: np.ndarray, found: np.ndarray, classes: Sequence[str], truth: np.ndarray | None = None) -> bytes:
    """Return an image (h, w, 1 or 3), uint8, under a mask (h, w) of 0 and class + 1, each patch with its class, PNG.

    `truth`: a second mask whose outlines are drawn in white.
    """
    picture, factor = _enlarged(image)
    large = _repeated(found, factor)
    colours = np.array([(0, 0, 0), *(COLOURS[at % len(COLOURS)] for at in range(len(classes)))], np.float64)
    pixels = np.asarray(picture, np.float64)
    cover = np.where(large > 0, _COVER, 0.0)[..., None]
    pixels = pixels * (1 - cover) + colours[large] * cover
    if truth is not None:
        pixels[_outline(_repeated(truth, factor))] = 255
    picture = Image.fromarray(pixels.round().astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    for value, y, x in patches(found):
        _text(draw, (x + 0.5) * factor, (y + 0.5) * factor, classes[value - 1], (255, 255, 255), centred=True)
    return png(picture)


def patches(found: np.ndarray) -> list[tuple[int, float, float]]:
    """Return (value, mean row, mean column) of each connected patch of a mask that is large enough to be labelled."""
    numbers = np.where(found > 0, np.arange(1, found.size + 1).reshape(found.shape), 0)
    same = [(axis, found == np.roll(found, 1, axis)) for axis in (0, 1)]
    while True:
        grown = numbers.copy()
        for axis, alike in same:
            first = [slice(None)] * 2
            first[axis] = slice(0, 1)
            alike = alike.copy()
            alike[tuple(first)] = False  # what np.roll brings from the other edge
            grown = np.where(alike, np.maximum(grown, np.roll(grown, 1, axis)), grown)
            back = np.roll(alike, -1, axis)
            grown = np.where(back, np.maximum(grown, np.roll(grown, -1, axis)), grown)
        if (grown == numbers).all():
            break
        numbers = grown
    found_patches = []
    for number in np.unique(numbers[numbers > 0]):
        rows, columns = np.nonzero(numbers == number)
        if len(rows) >= _SMALLEST_LABELLED:
            found_patches.append((int(found[rows[0], columns[0]]), float(rows.mean()), float(columns.mean())))
    return found_patches


def _enlarged(image: np.ndarray) -> tuple[Image.Image, int]:
    """Return the image in colour, each pixel a square of `factor` × `factor`, and that factor."""
    image = np.asarray(image)
    colour = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
    factor = max(1, round(WIDTH / image.shape[1]))
    return Image.fromarray(_repeated(colour, factor)), factor


def _repeated(array: np.ndarray, factor: int) -> np.ndarray:
    return np.ascontiguousarray(array.repeat(factor, axis=0).repeat(factor, axis=1))


def _outline(values: np.ndarray) -> np.ndarray:
    """Return where a value other than 0 has another one to its left, right, above or below."""
    edge = np.zeros(values.shape, bool)
    edge[1:] |= values[1:] != values[:-1]
    edge[:-1] |= values[1:] != values[:-1]
    edge[:, 1:] |= values[:, 1:] != values[:, :-1]
    edge[:, :-1] |= values[:, 1:] != values[:, :-1]
    return edge & (values > 0)


def _box(draw: ImageDraw.ImageDraw, where: np.ndarray, colour: tuple[int, int, int], text: str) -> None:
    """Draw a box with a word above it, or below where there is no room above."""
    x, y, x_end, y_end = _ends(where)
    draw.rectangle((x, y, x_end, y_end), outline=colour, width=2)
    _text(draw, x, y - _FONT_SIZE - 2 if y > _FONT_SIZE else y_end + 1, text, colour)


def _missed(draw: ImageDraw.ImageDraw, where: np.ndarray, text: str) -> None:
    """Draw a dashed box with a word below it, where that of a wrong box at the same place is not."""
    x, y, x_end, y_end = _ends(where)
    corners = [(x, y), (x_end, y), (x_end, y_end), (x, y_end)]
    for at, corner in enumerate(corners):
        _dashes(draw, corners[at - 1], corner, MISSED)
    _text(draw, x, y_end + 1, text, MISSED)


def _ends(where: np.ndarray) -> tuple[float, float, float, float]:
    x, y, width, height = (float(side) for side in where)
    return x, y, max(x, x + width - 1), max(y, y + height - 1)


def _dashes(
    draw: ImageDraw.ImageDraw, start: tuple[float, float], end: tuple[float, float], colour: tuple[int, int, int]
) -> None:
    (x, y), (x_end, y_end) = start, end
    length = max(abs(x_end - x), abs(y_end - y), 1.0)
    for at in np.arange(0, length, 8):
        parts = at / length, min(1.0, (at + 4) / length)
        ends = [(x + part * (x_end - x), y + part * (y_end - y)) for part in parts]
        draw.line([*ends[0], *ends[1]], fill=colour, width=2)


def _text(
    draw: ImageDraw.ImageDraw, x: float, y: float, text: str, colour: tuple[int, int, int], centred: bool = False
) -> None:
    """Draw a word with a dark edge, moved into the picture if it would stand outside."""
    font = ImageFont.load_default(_FONT_SIZE)
    left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
    if centred:
        x, y = x - (left + right) / 2, y - (top + bottom) / 2
    width, height = draw.im.size
    x, y = min(max(1.0, x), width - right - 2), min(max(0.0, y), height - bottom - 1)
    draw.text((x, y), text, fill=colour, font=font, stroke_width=2, stroke_fill=(0, 0, 0))


def png(picture: Image.Image) -> bytes:
    """Return a picture as the content of a PNG file."""
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()
