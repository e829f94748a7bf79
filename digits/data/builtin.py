"""The dataset that is always there: scikit-learn's 1797 handwritten digits of 8 × 8 pixels."""

import numpy as np
from PIL import Image

from digits.data import split
from digits.data.dataset import Dataset
from digits.data.resize import check_size, fit
from digits.workspace import Workspace

SOURCE = "scikit-learn's digits (UCI ML hand-written digits, test set)"


def sklearn_digits(
    workspace: Workspace,
    name: str = "digits",
    *,
    size: int = 8,
    validation: float = 0.15,
    test: float = 0.15,
    seed: int = 0,
) -> Dataset:
    """Write scikit-learn's digits as a dataset of ten classes, size × size × 1.

    Their grey levels from 0 to 16 become 0 to 255, rounded. Raises DigitsError for a size or shares that do not work.
    """
    from sklearn.datasets import load_digits

    check_size(size, size, 1, "squash")
    split.check_shares(validation, test)
    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[..., None]
    if size != images.shape[1]:
        rng = np.random.default_rng(seed)
        images = np.stack([fit(Image.fromarray(image[..., 0]), size, size, 1, "squash", rng) for image in images])
    labels = bunch.target.astype(np.int64)
    parts = {
        part: {"images": images[drawn], "labels": labels[drawn], "names": [f"digit {index}" for index in drawn]}
        for part, drawn in split.draw(labels, validation, test, seed).items()
    }
    classes, resize = [str(digit) for digit in bunch.target_names], "none" if size == 8 else "squash"
    return Dataset.create(workspace, name, "classification", classes, parts, seed=seed, source=SOURCE, resize=resize)
