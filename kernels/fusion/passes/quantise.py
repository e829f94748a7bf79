"""INT8 calibration: the scale of each tensor from a few hundred sample inputs. Symmetric, one scale per tensor.

A scale maps |x| = threshold to step 127, and clips what is larger. A large threshold makes all steps coarse for the
sake of a few outliers; a small one clips them. Three ways to choose it:

    min-max      the largest |x| seen: nothing of the samples is clipped
    percentile   clips the largest 0.01 % of the values
    entropy      of all thresholds the one with which the distribution of steps tells the most of that of |x|: the least
                 Kullback-Leibler divergence (Migacz, "8-bit Inference with TensorRT", GTC 2017), zeros left aside
    entropy of   the same with the zeros, as the slides write it down: half of what ReLU leaves are zeros, and spread
    the slides   over the first level they cost the more, the larger the threshold, so that it clips far too much
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernels.fusion.graph import Graph, interpret
from kernels.fusion.graph.int8 import STEPS

BINS, LEVELS = 2048, 128  # of the histogram of |x|, and of INT8 from 0 on
PERCENT = 99.99


@dataclass(frozen=True)
class Histogram:
    """`counts[i]` values lie in bin i of BINS equal ones from 0 to `largest`, the largest |x|."""

    counts: np.ndarray
    largest: float

    @classmethod
    def of(cls, values: np.ndarray, bins: int = BINS) -> Histogram:
        """Count |values|, any shape. ValueError where one is not finite or there are none."""
        magnitudes = np.abs(np.asarray(values, np.float64)).ravel()
        if not magnitudes.size or not np.isfinite(magnitudes).all():
            raise ValueError("calibration needs finite values; some are NaN or infinite, or there are none")
        largest = float(magnitudes.max())
        counts, _ = np.histogram(magnitudes, bins, (0, largest or 1.0))
        return cls(counts, largest or 1.0)

    @property
    def width(self) -> float:
        """Return the width of a bin."""
        return self.largest / len(self.counts)

    @property
    def without_zeros(self) -> Histogram:
        """Return the same with the second bin's count in the first, which holds the exact zeros, too.

        INT8 has a step for 0 whatever the scale, so zeros say nothing about it. NVIDIA's pytorch-quantization does so
        in `compute_amax_entropy` (github.com/NVIDIA/TensorRT, tools/pytorch-quantization, calib/histogram.py).
        """
        counts = self.counts.copy()
        counts[0] = counts[1]
        return Histogram(counts, self.largest)


def min_max(histogram: Histogram) -> float:
    """Return the largest |x|."""
    return histogram.largest


def percentile(histogram: Histogram, percent: float = PERCENT) -> float:
    """Return the upper edge of the bin up to which `percent` of the values lie."""
    below = np.cumsum(histogram.counts)
    return (int(np.searchsorted(below, percent / 100 * below[-1])) + 1) * histogram.width


def entropy(histogram: Histogram) -> float:
    """Return the threshold of the least divergence of the histogram without zeros."""
    return entropy_of_slides(histogram.without_zeros)


def entropy_of_slides(histogram: Histogram) -> float:
    """Return the threshold of the least divergence; of several, the smallest.

    Candidates are (i + 0.5) · width for i bins kept, from LEVELS to all of them, as in the slides. Where no candidate
    has a finite divergence, such as for a tensor of few different values, it is the largest |x|.
    """
    if not histogram.counts.any():
        return histogram.largest
    bins, values = divergences(histogram)
    if not np.isfinite(values).any():
        return histogram.largest
    best = int(bins[np.argmin(values)])
    return min((best + 0.5) * histogram.width, histogram.largest)


def divergences(histogram: Histogram, levels: int = LEVELS) -> tuple[np.ndarray, np.ndarray]:
    """Return (bins kept, divergence in nats) for each candidate; infinite where a value would get the probability 0."""
    bins = np.arange(min(levels, len(histogram.counts)), len(histogram.counts) + 1)
    return bins, np.array([divergence(histogram.counts, int(kept), levels) for kept in bins])


def divergence(counts: np.ndarray, kept: int, levels: int = LEVELS) -> float:
    """Return Kullback-Leibler divergence of steps from values, in nats, if the first `kept` bins are mapped to `levels`
    steps.

    P: the kept bins, with all that is clipped in the last one. Q: the kept bins without it, each level's count spread
    evenly over those of its bins that hold anything.
    """
    counts = np.asarray(counts, np.float64)
    clipped = counts[kept:].sum()
    reference = counts[:kept].copy()
    level = np.arange(kept) * levels // kept
    filled = reference > 0
    in_level = np.bincount(level, reference, levels)
    bins_of_level = np.bincount(level, filled, levels)
    spread = np.where(filled, in_level[level] / np.maximum(bins_of_level[level], 1), 0)
    reference[-1] += clipped
    p, q = reference / reference.sum(), spread / max(spread.sum(), 1e-300)
    there = p > 0
    if (q[there] == 0).any():
        return np.inf
    return float((p[there] * np.log(p[there] / q[there])).sum())


METHODS: Mapping[str, Callable[[Histogram], float]] = {
    "min-max": min_max,
    "percentile": percentile,
    "entropy": entropy,
    "entropy of the slides": entropy_of_slides,
}


def histograms(graph: Graph, *inputs: np.ndarray) -> dict[str, Histogram]:
    """Return the histogram of every tensor of a float32 graph over sample inputs, each (samples, *shape)."""
    values = interpret.all_tensors(graph, *inputs, dtype=np.float32)
    return {name: Histogram.of(array) for name, array in values.items()}


def scales(graph: Graph, *inputs: np.ndarray, method: str = "entropy") -> dict[str, float]:
    """Return the scale of every tensor, the real value of one INT8 step, from sample inputs, each (samples, *shape).

    `graph`: in float32; calibrate it after fusion, since the passes that follow look scales up by tensor. `method`: a
    key of METHODS. ValueError for another one, or for inputs that are not finite.
    """
    if method not in METHODS:
        raise ValueError(f"there is no calibration {method!r}; choose one of {', '.join(METHODS)}")
    return {name: METHODS[method](found) / STEPS for name, found in histograms(graph, *inputs).items()}
