"""Symmetric INT8: a real value is a whole number of steps, -127 to 127, times a scale. Halves go to the even step."""

import numpy as np

STEPS = 127  # on each side of zero; -128 is not used, so that negation never overflows


def quantised(values: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Return the steps nearest to `values`, int8, clipped to -127 … 127. `scale`: real value of one step, broadcast."""
    return np.clip(np.rint(values / scale), -STEPS, STEPS).astype(np.int8)


def rounded_values(values: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Return what is left of real values after INT8, in their own type."""
    return (quantised(values, scale) * np.asarray(scale)).astype(values.dtype)


def filter_scales(filters: np.ndarray) -> np.ndarray:
    """Return the scale of each filter, (filters,), float32: its largest absolute weight is step 127."""
    largest = np.abs(filters).reshape(len(filters), -1).max(axis=1)
    # Any scale serves a filter of zeros.
    return np.where(largest > 0, largest / STEPS, 1).astype(np.float32)


def rounded_filters(filters: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return filters (filters, ...) after INT8 with one scale per filter, in their own type."""
    return rounded_values(filters, scales.reshape(-1, *(1,) * (filters.ndim - 1)))
