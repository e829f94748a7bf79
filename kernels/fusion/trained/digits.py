"""scikit-learn's 1797 handwritten digits of 8 × 8 pixels, split once and for all.

The split is random: test images come from the same 13 writers as the rest, so accuracies here are no estimate for other
writers. Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI (1998).
"""

from dataclasses import dataclass

import numpy as np

SEED = 9
TEST, CALIBRATION = 360, 128  # images; the rest trains


@dataclass(frozen=True)
class Digits:
    """`images`: float32, (count, 1, 8, 8), from 0 to 1. `labels`: int64, (count,), 0 to 9."""

    images: np.ndarray
    labels: np.ndarray


def split() -> tuple[Digits, Digits, Digits]:
    """Return digits for training, for INT8's calibration, and for the test: 1309, 128 and 360, no image in two of
    them."""
    # Here, since importing scikit-learn takes a second.
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(SEED).permutation(len(images))
    test, calibration, training = np.split(order, [TEST, TEST + CALIBRATION])
    return tuple(Digits(images[part], labels[part]) for part in (training, calibration, test))
