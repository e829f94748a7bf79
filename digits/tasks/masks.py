"""How well masks agree: pixel accuracy, intersection over union of classes, and their means.

The four figures of Long, Shelhamer and Darrell, Fully convolutional networks for semantic segmentation, 2015, section
5, all from one table of counts. Masks hold 0 for ground and class + 1 otherwise.
"""

import numpy as np


def confusion(truth: np.ndarray, found: np.ndarray, values: int) -> np.ndarray:
    """Return how many pixels of each true value (rows) were given each value (columns): int64 (values, values).

    `truth` and `found` are whole numbers from 0 to values − 1, of one shape.
    """
    truth, found = np.asarray(truth), np.asarray(found)
    if truth.shape != found.shape:
        raise ValueError(f"masks of shapes {truth.shape} and {found.shape}; give the same shape")
    for name, mask in (("true", truth), ("found", found)):
        if mask.size and (mask.min() < 0 or mask.max() >= values):
            raise ValueError(f"the {name} mask has values {mask.min()} to {mask.max()}; give 0 to {values - 1}")
    pairs = truth.astype(np.int64).ravel() * values + found.astype(np.int64).ravel()
    return np.bincount(pairs, minlength=values * values).reshape(values, values)


def pixel_accuracy(counts: np.ndarray) -> float:
    """Return the part of all pixels that have the right value; ground counts as any other."""
    return float(np.trace(counts) / counts.sum()) if counts.sum() else 0.0


def iou_by_value(counts: np.ndarray) -> np.ndarray:
    """Return the IoU of each value, float64 (values,); NaN for one that is neither true nor found anywhere."""
    shared = np.diag(counts).astype(np.float64)
    union = counts.sum(axis=0) + counts.sum(axis=1) - shared
    return np.divide(shared, union, out=np.full(len(shared), np.nan), where=union > 0)


def mean_iou(counts: np.ndarray) -> float:
    """Return the mean of `iou_by_value` over the values that are anywhere, ground among them; 0.0 if there is none."""
    by_value = iou_by_value(counts)
    there = by_value[~np.isnan(by_value)]
    return float(there.mean()) if there.size else 0.0


def mean_accuracy(counts: np.ndarray) -> float:
    """Return the mean over the true values of the part of their pixels that were found; 0.0 without any pixel."""
    pixels = counts.sum(axis=1)
    return float((np.diag(counts)[pixels > 0] / pixels[pixels > 0]).mean()) if pixels.any() else 0.0


def weighted_iou(counts: np.ndarray) -> float:
    """Return the mean of `iou_by_value` weighted by true pixels; 0.0 without any pixel."""
    pixels = counts.sum(axis=1)
    there = pixels > 0
    return float(np.sum(pixels[there] * iou_by_value(counts)[there]) / pixels.sum()) if pixels.any() else 0.0
