"""Images to one size: the four ways of DIGITS 6 (`digits/utils/image.py` there)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from digits.files import DigitsError

MODES = {
    "crop": "Crop: the image covers the size, what sticks out is cut off",
    "squash": "Squash: the image takes the size, shapes are distorted",
    "fill": "Fill: the image fits into the size, the rest is noise",
    "half crop": "Half crop, half fill: between the two, something is cut off and something filled",
}
MOST_SIDE = 1024  # pixels; a dataset's images have this height and width at most


def fit(
    image: Image.Image, height: int, width: int, channels: int, mode: str, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return `image` as uint8 (height, width, channels). `rng` draws the noise beside it.

    channels: 1 (grey, ITU-R 601 luma) or 3 (RGB). Bilinear, over all pixels that a new one covers. Raises DigitsError
    for a size or mode that there is not.
    """
    check_size(height, width, channels, mode)
    image = image.convert("L" if channels == 1 else "RGB")
    across, down = image.width / width, image.height / height
    ratio = {"crop": min(across, down), "fill": max(across, down), "half crop": (across + down) / 2}.get(mode)
    size = (width, height)
    if ratio is not None and across != down:
        size = (max(round(image.width / ratio), 1), max(round(image.height / ratio), 1))
    scaled = np.asarray(image if image.size == size else image.resize(size, Image.Resampling.BILINEAR))
    return _centred(scaled.reshape(size[1], size[0], channels), height, width, rng)


def check_size(height: int, width: int, channels: int, mode: str) -> None:
    """Raise DigitsError unless images can be brought to this size in this way."""
    if not (1 <= height <= MOST_SIDE and 1 <= width <= MOST_SIDE):
        raise DigitsError(f"An image size of {width} × {height}: both must be from 1 to {MOST_SIDE} pixels.")
    if channels not in (1, 3):
        raise DigitsError(f"{channels} channels: choose 1 for grey or 3 for colour.")
    if mode not in MODES:
        raise DigitsError(f"There is no resize mode {mode!r}. Choose one of {', '.join(MODES)}.")


def _centred(image: NDArray[np.uint8], height: int, width: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the middle of `image`, or `image` in the middle of noise, along each side."""
    for axis, wanted in enumerate((height, width)):
        there = image.shape[axis]
        if there > wanted:
            start = (there - wanted) // 2
            image = image[start : start + wanted] if axis == 0 else image[:, start : start + wanted]
        elif there < wanted:
            before = (wanted - there) // 2
            shape = list(image.shape)
            shape[axis] = wanted
            noise = rng.integers(0, 256, shape, dtype=np.uint8)
            (noise if axis == 0 else noise.swapaxes(0, 1))[before : before + there] = (
                image if axis == 0 else image.swapaxes(0, 1)
            )
            image = noise
    return np.ascontiguousarray(image)
