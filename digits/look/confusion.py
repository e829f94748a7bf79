"""A classifier's answers against the truth: confusion matrix, precision, recall, top answers, worst mistakes."""

import numpy as np
from numpy.typing import NDArray

LEAST_PROBABILITY = 1e-12
NORMAL_95 = 1.959964  # standard deviations about the mean that hold 95 % of a normal distribution


def confusion_matrix(labels: np.ndarray, predicted: np.ndarray, classes: int) -> NDArray[np.int64]:
    """Count images by true class (row) and answered class (column). Labels of shape (n,), from 0 to classes - 1.

    ValueError for labels outside, or arrays of different lengths.
    """
    labels, predicted = np.asarray(labels, np.int64), np.asarray(predicted, np.int64)
    if labels.shape != predicted.shape or labels.ndim != 1:
        raise ValueError(f"labels of shape {labels.shape} and answers of shape {predicted.shape}; both must be (n,)")
    for name, values in (("label", labels), ("answer", predicted)):
        if values.size and not (values.min() >= 0 and values.max() < classes):
            raise ValueError(f"a {name} lies outside of 0 to {classes - 1}")
    counts = np.bincount(labels * classes + predicted, minlength=classes * classes)
    return counts.reshape(classes, classes).astype(np.int64)


def precision(matrix: np.ndarray) -> NDArray[np.float64]:
    """Return the share of the answers "this class" that is right, by class; NaN where the class was never answered."""
    return _share(np.diag(matrix), matrix.sum(axis=0))


def recall(matrix: np.ndarray) -> NDArray[np.float64]:
    """Return the share of this class's images that is found, by class; NaN where there is no such image."""
    return _share(np.diag(matrix), matrix.sum(axis=1))


def f1(matrix: np.ndarray) -> NDArray[np.float64]:
    """Return harmonic mean of precision and recall, by class: 2 TP / (2 TP + FP + FN); NaN where all three are 0."""
    right = np.diag(matrix)
    return _share(2 * right, matrix.sum(axis=0) + matrix.sum(axis=1))


def accuracy(matrix: np.ndarray) -> float:
    """Return the share of all images that is right; NaN without images."""
    return float(_share(np.trace(matrix), matrix.sum()))


def interval(right: int, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of an accuracy: of `count` images `right` are right.

    Wilson's score interval (1927; Agresti and Coull, 1998, compare it): unlike p ± 2 standard errors it stays within 0
    and 1, and does not say "for certain" where all are right. (nan, nan) without images.
    """
    if not count:
        return float("nan"), float("nan")
    p, z = right / count, NORMAL_95
    middle = p + z * z / (2 * count)
    half = z * np.sqrt(p * (1 - p) / count + (z / (2 * count)) ** 2)
    low, high = (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)
    return max(0.0, float(low)), min(1.0, float(high))


def top(probabilities: np.ndarray, k: int = 5) -> list[list[tuple[int, float]]]:
    """Return, for each row of (n, classes), the k most probable classes with their probabilities, ties in order.

    What is no number comes last: a network that diverged answers NaN.
    """
    probabilities = np.asarray(probabilities)
    ranked = np.argsort(-np.nan_to_num(probabilities, nan=-1.0), axis=1, kind="stable")[:, :k]
    return [[(int(c), float(row[c])) for c in best] for row, best in zip(probabilities, ranked, strict=True)]


def answers(probabilities: np.ndarray) -> NDArray[np.int64]:
    """Return the most probable class of each row of (n, classes), the first of equals."""
    return np.argmax(np.nan_to_num(probabilities, nan=-1.0), axis=1).astype(np.int64)


def worst(probabilities: np.ndarray, labels: np.ndarray, most: int = 12) -> NDArray[np.int64]:
    """Return indices of the wrong answers, the one that gave the truth the least probability first."""
    labels = np.asarray(labels, np.int64)
    wrong = np.flatnonzero(answers(probabilities) != labels)
    of_truth = np.nan_to_num(probabilities[wrong, labels[wrong]], nan=0.0)
    return wrong[np.argsort(of_truth, kind="stable")][:most]


def mean_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean cross-entropy in nats, probabilities below 1e-12 taken for that; NaN without images."""
    if not len(labels):
        return float("nan")
    of_truth = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(of_truth, LEAST_PROBABILITY)).mean())


def _share(part: np.ndarray, whole: np.ndarray) -> NDArray[np.float64]:
    whole = np.asarray(whole, np.float64)
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
