"""The alpha-beta model fitted to two points of a ring broadcast's curve, as lesson 10 does, and held against others."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.collectives import measurements, model
from kernels.collectives.model import Link


@dataclass(frozen=True)
class Check:
    """A model fitted to two points of a curve. `errors`: predicted/measured − 1, by S."""

    points: tuple[int, int]
    link: Link
    errors: dict[int, float]

    @property
    def worst(self) -> float:
        """Return the largest error of a point that was not fitted."""
        return max(abs(error) for s, error in self.errors.items() if s not in self.points)


def curve(ranks: int, key: str = "seconds", engine: str = "copies") -> dict[int, float]:
    """Return what was recorded of a ring broadcast of 1 GiB by copies, by S."""
    rows = measurements.recorded("broadcast_curve", ranks).value["rows"]
    return {row["slices"]: row[key] for row in rows if row["engine"] == engine}


def check(ranks: int, first: int, second: int) -> Check:
    """Fit α and B to the recorded times at S = first and S = second, predict all."""
    n, seconds = measurements.N, curve(ranks)
    link = fit(n, ranks, *((s, seconds[s]) for s in (first, second)))
    predicted = {s: model.ring_broadcast(n, ranks, s, link) for s in seconds}
    return Check((first, second), link, {s: seconds[s] / predicted[s] - 1 for s in seconds})


def fit(n: float, k: int, first: tuple[float, float], second: tuple[float, float]) -> Link:
    """Return α and B of a ring broadcast of n bytes over k ranks from two (S, seconds): a line in 1/S."""
    (s1, t1), (s2, t2) = first, second
    y1, y2 = t1 / (s1 + k - 2), t2 / (s2 + k - 2)
    seconds = (y1 - y2) / (1 / s1 - 1 / s2)  # N/B
    return Link(y1 - seconds / s1, n / seconds)
