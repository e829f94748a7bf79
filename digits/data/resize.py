"""Images to one size: the four ways of DIGITS 6 (`digits/utils/image.py` there)."""

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
    size, box = (width, height), (0.0, 0.0, float(image.width), float(image.height))
    if ratio is not None and across != down:
        # Cut before scaling: a very long image would become a huge one first.
        (new_width, left, right), (new_height, top, bottom) = (
            _side(there, wanted, ratio) for there, wanted in ((image.width, width), (image.height, height))
        )
        size, box = (new_width, new_height), (left, top, right, bottom)
    unchanged = image.size == size and box == (0, 0, *image.size)
    scaled = np.asarray(image if unchanged else image.resize(size, Image.Resampling.BILINEAR, box))
    return _in_noise(scaled.reshape(size[1], size[0], channels), height, width, rng)


def _side(there: int, wanted: int, ratio: float) -> tuple[int, float, float]:
    """Return the pixels of a scaled side, `wanted` at most, and from where to where they come, in the middle."""
    scaled = max(round(there / ratio), 1)
    if scaled < wanted:
        return scaled, 0.0, float(there)
    taken = min(wanted * ratio, there)
    return wanted, (there - taken) / 2, (there + taken) / 2


def check_size(height: int, width: int, channels: int, mode: str) -> None:
    """Raise DigitsError unless images can be brought to this size in this way."""
    if not (1 <= height <= MOST_SIDE and 1 <= width <= MOST_SIDE):
        raise DigitsError(f"An image size of {width} × {height}: both must be from 1 to {MOST_SIDE} pixels.")
    if channels not in (1, 3):
        raise DigitsError(f"{channels} channels: choose 1 for grey or 3 for colour.")
    if mode not in MODES:
        raise DigitsError(f"There is no resize mode {mode!r}. Choose one of {', '.join(MODES)}.")


def _in_noise(image: NDArray[np.uint8], height: int, width: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return `image`, or `image` in the middle of noise if it is smaller than height × width."""
    if image.shape[:2] == (height, width):
        return np.array(image)
    result = rng.integers(0, 256, (height, width, image.shape[2]), dtype=np.uint8)
    top, left = (height - image.shape[0]) // 2, (width - image.shape[1]) // 2
    result[top : top + image.shape[0], left : left + image.shape[1]] = image
    return result
