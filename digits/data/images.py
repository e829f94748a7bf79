"""One image from outside, brought to what the images of a dataset are."""

import numpy as np
from numpy.typing import NDArray

from digits.data.dataset import Dataset
from digits.data.read_image import read_image
from digits.data.resize import MODES, fit


def one(data: bytes, dataset: Dataset) -> NDArray[np.uint8]:
    """Return the image in `data`, the content of a file, as uint8 (height, width, channels) of `dataset`.

    It is resized as the dataset's images were; squashed, if these never were. Raises BadImage, a DigitsError, with the
    reason if there is no image in `data`.
    """
    mode = dataset.resize if dataset.resize in MODES else "squash"
    return fit(read_image(data), *dataset.shape, mode, np.random.default_rng(dataset.seed))
