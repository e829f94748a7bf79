"""Readings on four H200 that the course's authors took before this lab was written, and the model held against them.

A learner's machine will not show the same figures, and the lab's own recordings are elsewhere. GB/s are 1e9 bytes per
second, algorithm bandwidth, 1 GiB.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.collectives import model
from kernels.collectives.model import Link

LABEL = "4 × H200, measured 2026-11 by the course's authors, NVLink multicast off"
N = 2**30  # bytes

# Ring broadcast by peer copies on streams, ordered by events: GB/s by S.
RING_OF_PEER_COPIES = {
    4: {1: 132, 2: 196, 4: 260, 8: 309, 16: 338, 32: 349, 64: 343, 128: 327, 256: 276},
    2: {8: 391, 64: 364, 256: 317},
}
ONE_PEER_COPY = 395
NCCL_BROADCAST = 349  # NCCL 2.28.9, the same run
NCCL_ALL_REDUCE_BUS = 349
# A later run: NCCL 356 to 359; a kernel that forwards 64 KiB tiles by TMA (128 blocks, 3 stages), and one hop of it.
LATER_NCCL_BROADCAST = (356, 359)
LATER_TMA_FORWARDING = 363.6
LATER_TMA_ONE_HOP = 372
LATER_SCATTER_AND_EXCHANGE = 229  # by copy engines


@dataclass(frozen=True)
class Check:
    """A model fitted to two points of a curve and held against the others. `errors`: predicted/measured − 1, by S."""

    ranks: int
    points: tuple[int, int]
    link: Link
    errors: dict[int, float]

    @property
    def worst(self) -> float:
        """The largest error of a point that was not fitted."""
        return max(abs(error) for s, error in self.errors.items() if s not in self.points)


def check(ranks: int, first: int, second: int) -> Check:
    """Fit α and B to the readings at S = first and S = second, predict all. ValueError as `fit_two_points`."""
    curve = RING_OF_PEER_COPIES[ranks]
    for s in (first, second):
        if s not in curve:
            raise ValueError(f"there is no reading at S = {s} on {ranks} ranks; choose two of {list(curve)}")
    link = model.fit_two_points(N, ranks, *((s, N / (curve[s] * 1e9)) for s in (first, second)))
    predicted = model.predict(N, ranks, list(curve), link)
    return Check(ranks, (first, second), link, {s: predicted[s] / 1e9 / gbps - 1 for s, gbps in curve.items()})


def check_all_pairs(ranks: int) -> dict[tuple[int, int], Check | None]:
    """`check` for every pair of readings; None where two points give no α ≥ 0."""
    curve = sorted(RING_OF_PEER_COPIES[ranks])
    found: dict[tuple[int, int], Check | None] = {}
    for i, first in enumerate(curve):
        for second in curve[i + 1 :]:
            try:
                found[first, second] = check(ranks, first, second)
            except ValueError:
                found[first, second] = None
    return found
