"""Augmentation: images changed a little, at random, each time they are trained on.

What becomes of an image is a function of the seed, the epoch and the image's index alone, not of the batch or of what
was drawn before, so that training may be broken off and resumed anywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from digits.files import DigitsError

FLIPS = ("none", "horizontal", "vertical", "both")
# What each is at most, and what it means, for forms and for errors.
LIMITS = {
    "shift": (0.5, "the furthest shift along each side, as a share of it"),
    "rotation": (180.0, "the furthest turn either way, in degrees"),
    "scale": (0.9, "the largest change of size, as a share: 0.2 is from 0.8 to 1.2"),
    "noise": (100.0, "the standard deviation of the noise, in grey levels of 255"),
    "contrast": (0.9, "the largest change of contrast, as a share: 0.2 is from 0.8 to 1.2"),
}
_DRAWS = 7  # random numbers of an image, before its noise
_LEFT = 0.25  # share of a box that must stay in the image
_PIXELS_TOGETHER = 1 << 20  # of images that are changed at a time: some 100 bytes are needed for each


@dataclass(frozen=True)
class Augmentation:
    """How far images are changed; zeros and "none" leave them as they are. LIMITS says what each number means.

    flip: each image is flipped or not, with even odds; "both" draws each way on its own.
    """

    shift: float = 0.0
    rotation: float = 0.0
    scale: float = 0.0
    flip: str = "none"
    noise: float = 0.0
    contrast: float = 0.0

    def __post_init__(self) -> None:
        for name, (most, meaning) in LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise DigitsError(f"Augmentation: {name} is {value!r}. Give {meaning}, from 0 to {most:g}.")
        if self.flip not in FLIPS:
            raise DigitsError(f"Augmentation: flip is {self.flip!r}. Choose one of {', '.join(FLIPS)}.")

    @classmethod
    def from_dict(cls, value: Mapping[str, Any] | None) -> "Augmentation":
        """Return what a run's description asks for; none if it is empty. Raises DigitsError if it makes no sense."""
        if not isinstance(value or {}, Mapping):
            raise DigitsError(f"Augmentation must be given by names such as {{'shift': 0.1}}, not as {value!r}.")
        unknown = set(value or {}) - {field.name for field in fields(cls)}
        if unknown:
            known = ", ".join(field.name for field in fields(cls))
            raise DigitsError(f"Augmentation has no {', '.join(map(str, sorted(unknown, key=str)))}. It has {known}.")
        return cls(**(value or {}))

    @property
    def is_none(self) -> bool:
        return self == Augmentation()

    def apply(
        self,
        images: NDArray[np.uint8],
        indices: NDArray[np.int64],
        epoch: int,
        seed: int,
        masks: NDArray[np.uint8] | None = None,
        boxes: NDArray[np.float32] | None = None,
    ) -> Any:
        """Return changed copies of `images`; with masks or boxes a tuple with these moved along, in that order.

        images: uint8 (n, height, width, channels). indices: (n,) which images of the dataset they are. masks: uint8
        (n, height, width). boxes: float32 (n, most, 5), class, x, y, width, height in pixels; a box becomes the box
        around its moved corners, cut at the image's edges, and class -1 if less than a quarter of it is left.
        Pixels from outside an image are those of its edge, in a mask the ground.
        """
        given = [array for array in (images, masks, boxes) if array is not None]
        if self.is_none or not len(images):
            changed = [np.array(array) for array in given]
        else:
            together = max(1, _PIXELS_TOGETHER // (images.shape[1] * images.shape[2]))
            pieces = [
                self._changed(
                    images[piece], indices[piece], epoch, seed, *(_of(array, piece) for array in (masks, boxes))
                )
                for piece in (slice(start, start + together) for start in range(0, len(images), together))
            ]
            changed = [np.concatenate(several) for several in zip(*pieces, strict=True)]
        return changed[0] if len(changed) == 1 else tuple(changed)

    def _changed(
        self,
        images: NDArray[np.uint8],
        indices: NDArray[np.int64],
        epoch: int,
        seed: int,
        masks: NDArray[np.uint8] | None,
        boxes: NDArray[np.float32] | None,
    ) -> list[NDArray[Any]]:
        generators = [np.random.default_rng([seed, epoch, int(index)]) for index in indices]
        draws = np.array([generator.random(_DRAWS) for generator in generators])
        forward = self._matrices(draws, images.shape[1], images.shape[2])
        changed: list[NDArray[Any]] = [self._recoloured(_sampled(images, forward), draws, generators)]
        if masks is not None:
            changed.append(_nearest(masks, forward))
        if boxes is not None:
            changed.append(_moved(boxes, forward, images.shape[1], images.shape[2]))
        return changed

    def _matrices(self, draws: NDArray[np.float64], height: int, width: int) -> NDArray[np.float64]:
        """Return (n, 2, 3): where a pixel (y, x), counted from the image's middle, comes to lie."""
        signed = 2 * draws - 1
        shift = self.shift * signed[:, 0:2] * [height, width]
        angle = np.deg2rad(self.rotation * signed[:, 2])
        size = 1 + self.scale * signed[:, 3]
        down = np.where((draws[:, 4] < 0.5) & (self.flip in ("vertical", "both")), -1.0, 1.0)
        across = np.where((draws[:, 5] < 0.5) & (self.flip in ("horizontal", "both")), -1.0, 1.0)
        cos, sin = size * np.cos(angle), size * np.sin(angle)
        rows = [cos * down, sin * across, shift[:, 0]], [-sin * down, cos * across, shift[:, 1]]
        return np.array(rows).transpose(2, 0, 1)

    def _recoloured(
        self, images: NDArray[np.float32], draws: NDArray[np.float64], generators: list[np.random.Generator]
    ) -> NDArray[np.uint8]:
        """Return `images` with their contrast about their own mean changed, and with noise."""
        if self.contrast:
            mean = images.mean(axis=(1, 2, 3), keepdims=True)
            factor = 1 + self.contrast * (2 * draws[:, 6] - 1)
            images = mean + (images - mean) * factor[:, None, None, None].astype(np.float32)
        if self.noise:
            shape = images.shape[1:]
            images = images + self.noise * np.stack([each.standard_normal(shape, np.float32) for each in generators])
        return np.rint(images.clip(0, 255)).astype(np.uint8)


def _of(array: NDArray[Any] | None, piece: slice) -> NDArray[Any] | None:
    return None if array is None else array[piece]


def _sources(forward: NDArray[np.float64], height: int, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return from where (y, x) each pixel of the changed images comes, each (n, height, width)."""
    turn, shift = forward[:, :, :2], forward[:, :, 2]
    y, x = np.mgrid[:height, :width].reshape(2, -1) - np.array([[(height - 1) / 2], [(width - 1) / 2]])
    targets = np.stack([y, x])[None] - shift[:, :, None]
    source = np.linalg.inv(turn) @ targets
    source += np.array([[(height - 1) / 2], [(width - 1) / 2]])
    # Rounded, so that a shift by whole pixels stays one whatever the arithmetic left in the last digits.
    source = source.round(9)
    return source[:, 0].reshape(-1, height, width), source[:, 1].reshape(-1, height, width)


def _sampled(images: NDArray[np.uint8], forward: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the images moved by `forward`, bilinear between pixels, as float32."""
    n, height, width, _ = images.shape
    y, x = _sources(forward, height, width)
    y, x = y.clip(0, height - 1), x.clip(0, width - 1)
    top, left = np.floor(y).astype(np.intp), np.floor(x).astype(np.intp)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    down, across = ((value - floor)[..., None].astype(np.float32) for value, floor in ((y, top), (x, left)))
    which = np.arange(n)[:, None, None]
    upper = images[which, top, left] * (1 - across) + images[which, top, right] * across
    lower = images[which, bottom, left] * (1 - across) + images[which, bottom, right] * across
    return upper * (1 - down) + lower * down


def _nearest(masks: NDArray[np.uint8], forward: NDArray[np.float64]) -> NDArray[np.uint8]:
    n, height, width = masks.shape
    y, x = (np.rint(source).astype(np.intp) for source in _sources(forward, height, width))
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    taken = masks[np.arange(n)[:, None, None], y.clip(0, height - 1), x.clip(0, width - 1)]
    return np.where(inside, taken, 0).astype(np.uint8)


def _moved(boxes: NDArray[np.float32], forward: NDArray[np.float64], height: int, width: int) -> NDArray[np.float32]:
    """Return the boxes around the moved corners of `boxes`. A box's edges lie between pixels, at x and at x + width."""
    kind, x, y, across, down = np.moveaxis(boxes.astype(np.float64), 2, 0)
    corners = np.array([[y, x], [y, x + across], [y + down, x], [y + down, x + across]])  # (4, 2, n, most)
    middle = np.array([height / 2, width / 2])[None, :, None, None]
    moved = np.einsum("nij,cjnm->cinm", forward[:, :, :2], corners - middle)
    moved += forward[:, :, 2].T[None, :, :, None] + middle
    (top, left), (bottom, right) = moved.min(axis=0), moved.max(axis=0)
    whole = (bottom - top) * (right - left)
    top, bottom = top.clip(0, height), bottom.clip(0, height)
    left, right = left.clip(0, width), right.clip(0, width)
    kept = (kind >= 0) & ((bottom - top) * (right - left) >= _LEFT * whole) & (whole > 0)
    result = np.stack([np.where(kept, kind, -1), left, top, right - left, bottom - top], axis=2)
    return np.where(kept[..., None] | (np.arange(5) == 0), result, 0).astype(np.float32)
