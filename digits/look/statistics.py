"""Mean, standard deviation and histogram of an array, as DIGITS shows them beside every layer."""

from dataclasses import dataclass

import numpy as np

BINS = 20


@dataclass(frozen=True)
class Statistics:
    """Figures of `count` values. All but `not_finite` are of the finite ones; None where there is no finite value.

    `zeros`: the share that is exactly 0, as ReLU leaves it. `counts[i]` values lie between `edges[i]` and `edges[i+1]`.
    """

    count: int
    not_finite: int
    mean: float | None
    deviation: float | None
    least: float | None
    most: float | None
    zeros: float | None
    counts: tuple[int, ...]
    edges: tuple[float, ...]


def statistics(values: np.ndarray, bins: int = BINS) -> Statistics:
    """Return statistics of an array of numbers of any shape, computed in float64."""
    flat = np.asarray(values, np.float64).ravel()
    finite = flat[np.isfinite(flat)]
    lost = flat.size - finite.size
    if not finite.size:
        return Statistics(flat.size, lost, None, None, None, None, None, (), ())
    counts, edges = np.histogram(finite, bins=_edges(finite, bins))
    return Statistics(
        count=flat.size,
        not_finite=lost,
        mean=float(finite.mean()),
        deviation=float(finite.std()),
        least=float(finite.min()),
        most=float(finite.max()),
        zeros=float((finite == 0).mean()),
        counts=tuple(int(c) for c in counts),
        edges=tuple(float(e) for e in edges),
    )


def _edges(finite: np.ndarray, bins: int) -> np.ndarray:
    """Return `bins` bins of equal width from least to most, or a single one where these do not differ enough."""
    least, most = float(finite.min()), float(finite.max())
    edges = np.linspace(least, most, bins + 1)
    if np.all(np.diff(edges) > 0):
        return edges
    return np.array([least, np.nextafter(most, np.inf)])
