"""Which images are trained on, validated and tested on: a seeded draw within each class."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from digits.files import DigitsError


def draw(labels: ArrayLike, validation: float, test: float, seed: int) -> dict[str, NDArray[np.int64]]:
    """Return the indices of each part, in the order drawn.

    labels: (n,) the classes of all images. validation, test: the shares of each class, from 0 to below 1 together; at
    least one image of each class stays to train on. The draw within a class depends on `seed` and on how many images
    the class has, not on the other classes. Raises DigitsError for shares that leave nothing to train on.
    """
    check_shares(validation, test)
    if seed < 0:
        raise DigitsError(f"The seed is {seed}. Choose 0 or more.")
    labels = np.asarray(labels, np.int64)
    parts: dict[str, list[NDArray[np.int64]]] = {"train": [], "validation": [], "test": []}
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        members = np.random.default_rng([seed, int(label)]).permutation(members)
        to_validate, to_test = _counts(len(members), validation, test)
        parts["validation"].append(members[:to_validate])
        parts["test"].append(members[to_validate : to_validate + to_test])
        parts["train"].append(members[to_validate + to_test :])
    shuffle = np.random.default_rng([seed, len(labels), 1])
    return {
        part: shuffle.permutation(np.concatenate(drawn)) if drawn else np.zeros(0, np.int64)
        for part, drawn in parts.items()
    }


def check_shares(validation: float, test: float) -> None:
    if not (0 <= validation < 1 and 0 <= test < 1 and validation + test < 1):
        raise DigitsError(
            f"{validation:.0%} of the images for validation and {test:.0%} for test: both must be 0 % or more, and "
            "something must be left to train on."
        )


def _counts(images: int, validation: float, test: float) -> tuple[int, int]:
    """Return how many images of a class to validate and to test on; one at least is left."""
    to_validate, to_test = int(images * validation + 0.5), int(images * test + 0.5)
    while to_validate + to_test >= images > 0:
        if to_validate >= to_test:
            to_validate -= 1
        else:
            to_test -= 1
    return to_validate, to_test
