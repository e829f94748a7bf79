"""One synthetic scene: scikit-learn's digits at random places and sizes on a textured ground, with boxes and a mask.

A scene is a function of its seed alone, so that the same seed gives the same dataset on every machine. The digits of 8
× 8 pixels are cut to their ink and enlarged; the mask is where a pixel has more than half of the ink's greatest value,
and the box is the smallest one around the mask. A later digit may cover an edge of an earlier one, whose box stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from digits.files import DigitsError

CLASSES = tuple("0123456789")
BACKGROUND = 0  # in masks; class k is k + 1
NOTHING = -1  # the class of a row of boxes that holds none

_INK = 16  # the greatest value in scikit-learn's digits
_TRIES = 60  # places tried for one digit before the scene does without it
_MOST_OVERLAP = 0.05  # of the smaller box
_COVERED = 0.5  # of full ink, from where on a pixel belongs to the digit


@dataclass(frozen=True)
class SceneOptions:
    """What scenes look like. Sizes in pixels.

    `fewest` to `most` digits, each `smallest` to `largest` pixels high; `clutter` is the most strokes on the ground
    that are no digits; `noise` is the standard deviation of the noise on each pixel, of 255.
    """

    height: int = 64
    width: int = 64
    fewest: int = 1
    most: int = 5
    smallest: int = 12
    largest: int = 24
    clutter: int = 3
    noise: float = 8.0

    def __post_init__(self) -> None:
        for name, low, high in (("height", 24, 512), ("width", 24, 512), ("fewest", 0, 20), ("most", 1, 20)):
            _check_within(name, getattr(self, name), low, high)
        _check_within("smallest", self.smallest, 8, 512)
        _check_within("clutter", self.clutter, 0, 50)
        if not 0 <= self.noise <= 64:
            raise DigitsError(f"noise is {self.noise!r}; give a standard deviation from 0 to 64.")
        if self.fewest > self.most:
            raise DigitsError(f"fewest digits is {self.fewest}, above most, {self.most}; give fewest at most as large.")
        side = min(self.height, self.width)
        if not self.smallest <= self.largest <= side:
            raise DigitsError(
                f"digits from {self.smallest} to {self.largest} pixels do not fit a scene of {self.height} × "
                f"{self.width}; give smallest ≤ largest ≤ {side}."
            )


def _check_within(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise DigitsError(f"{name} is {value!r}; give a whole number from {low} to {high}.")


@dataclass(frozen=True)
class Scene:
    """`image` uint8 (height, width); `boxes` float32 (digits, 5): class, x, y, width, height in pixels; `mask` uint8
    (height, width): 0 for ground, class + 1 for a digit."""

    image: np.ndarray
    boxes: np.ndarray
    mask: np.ndarray = field(repr=False)


def draw_scene(
    random: np.random.Generator, digits: np.ndarray, labels: np.ndarray, options: SceneOptions | None = None
) -> Scene:
    """Draw one scene.

    `digits` (n, 8, 8), 0 to 16, and `labels` (n,), 0 to 9, as `load_digits` gives them: those to use. A digit that
    finds no free place after 60 tries is left out, so a crowded scene may have fewer than `options.fewest`.
    """
    options = options or SceneOptions()
    canvas = _ground(random, options)
    _draw_clutter(random, canvas, options)
    mask = np.full((options.height, options.width), BACKGROUND, np.uint8)
    boxes: list[tuple[float, ...]] = []
    for _ in range(int(random.integers(options.fewest, options.most + 1))):
        chosen = int(random.integers(len(digits)))
        ink = _enlarged(digits[chosen], int(random.integers(options.smallest, options.largest + 1)), options)
        inside = ink > _COVERED
        place = _free_place(random, inside.shape, boxes, options)
        if place is None:
            continue
        y, x = place
        height, width = inside.shape
        here = np.s_[y : y + height, x : x + width]
        brightness = random.uniform(160, 250)
        canvas[here] = canvas[here] * (1 - ink) + brightness * ink
        mask[here][inside] = int(labels[chosen]) + 1
        boxes.append((float(labels[chosen]), float(x), float(y), float(width), float(height)))
    canvas += random.normal(0, options.noise, canvas.shape)
    image = np.clip(np.round(canvas), 0, 255).astype(np.uint8)
    return Scene(image, np.array(boxes, np.float32).reshape(-1, 5), mask)


def pack_boxes(scenes: Sequence[np.ndarray], most: int) -> np.ndarray:
    """Return boxes of scenes, (k, 5) with k ≤ most each, as float32 (scenes, most, 5), padded with class −1."""
    packed = np.zeros((len(scenes), most, 5), np.float32)
    packed[:, :, 0] = NOTHING
    for row, boxes in zip(packed, scenes, strict=True):
        row[: len(boxes)] = boxes
    return packed


def unpack_boxes(packed: np.ndarray) -> np.ndarray:
    """Return the boxes of one scene, (most, 5), without the rows of class −1."""
    return packed[packed[:, 0] >= 0]


def _ground(random: np.random.Generator, options: SceneOptions) -> np.ndarray:
    """Return a dark ground with patches of a few sizes and stripes, float64 (height, width)."""
    shape = (options.height, options.width)
    ground = np.full(shape, random.uniform(45, 85))
    for cells, depth in ((3, 25.0), (8, 14.0)):
        ground += _resized(random.uniform(-depth, depth, (cells, cells)), shape)
    y, x = np.mgrid[: shape[0], : shape[1]]
    angle, period = random.uniform(0, np.pi), random.uniform(4, 16)
    phase = 2 * np.pi * (np.cos(angle) * x + np.sin(angle) * y) / period
    return ground + random.uniform(0, 12) * np.sin(phase + random.uniform(0, 2 * np.pi))


def _draw_clutter(random: np.random.Generator, canvas: np.ndarray, options: SceneOptions) -> None:
    """Draw straight strokes as bright as digits, in place: what a detector must not take for one."""
    y, x = np.mgrid[: options.height, : options.width]
    for _ in range(int(random.integers(0, options.clutter + 1))):
        row, column = random.uniform(0, options.height), random.uniform(0, options.width)
        angle, length = random.uniform(0, np.pi), random.uniform(6, options.largest)
        along = (x - column) * np.cos(angle) + (y - row) * np.sin(angle)
        across = (y - row) * np.cos(angle) - (x - column) * np.sin(angle)
        cover = np.clip(1.5 - np.abs(across), 0, 1) * (np.abs(along) <= length / 2)
        canvas += cover * (random.uniform(130, 220) - canvas)


def _enlarged(digit: np.ndarray, height: int, options: SceneOptions) -> np.ndarray:
    """Return how much of each pixel the ink covers, 0 to 1, cut to the box of what is covered by more than half.

    `height` is that of the whole digit before it is cut; its width follows, up to the width of the scene.
    """
    ink = digit / _INK
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    ink = np.pad(ink, 1)  # the outline fades to nothing instead of ending at the cut
    scale = height / (ink.shape[0] - 2)
    shape = tuple(max(3, round(side * scale)) for side in ink.shape)
    ink = _resized(ink, shape)
    inside = ink > _COVERED
    rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    ink = ink[: options.height, : options.width]
    # A steeper edge than the enlarging gives, as that of a pen.
    return np.clip((ink - _COVERED) * 2.5 + _COVERED, 0, 1)


def _free_place(
    random: np.random.Generator, shape: tuple[int, int], boxes: list[tuple[float, ...]], options: SceneOptions
) -> tuple[int, int] | None:
    height, width = shape
    for _ in range(_TRIES):
        y = int(random.integers(options.height - height + 1))
        x = int(random.integers(options.width - width + 1))
        if all(_overlap((x, y, width, height), other[1:]) <= _MOST_OVERLAP for other in boxes):
            return y, x
    return None


def _overlap(box: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the area that two boxes share, of the smaller one's."""
    across = min(box[0] + box[2], other[0] + other[2]) - max(box[0], other[0])
    down = min(box[1] + box[3], other[1] + other[3]) - max(box[1], other[1])
    return max(across, 0.0) * max(down, 0.0) / min(box[2] * box[3], other[2] * other[3])


def _resized(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    picture = Image.fromarray(values.astype(np.float32))
    return np.asarray(picture.resize((shape[1], shape[0]), Image.Resampling.BICUBIC), np.float64)
