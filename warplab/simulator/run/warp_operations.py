"""Warp-wide instructions: shuffles, votes, matches and reductions between the lanes of a warp.

Values are laid out as a matrix with one row per warp and one column per lane; lanes outside the group are blank. Lanes
of one warp may take part with different masks (tiles of a cooperative group), so results are computed per lane.
"""

from collections.abc import Callable

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.numerics import rounding

_FULL = 0xFFFFFFFF
_REDUCTIONS: dict[str, tuple[Callable, float | None]] = {
    "add": (np.add, 0),
    "min": (np.minimum, None),
    "max": (np.maximum, None),
    "and": (np.bitwise_and, _FULL),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
    # Of float32: NaN counts if all lanes hold one, with .NaN if any does.
    "fmin": (rounding.minimum, np.nan),
    "fmax": (rounding.maximum, np.nan),
    "fmin_nan": (rounding.minimum_nan, np.inf),
    "fmax_nan": (rounding.maximum_nan, -np.inf),
}


class WarpOperations:
    """Called by translated blocks. `lanes` are the group's, None for all; results have one entry per lane."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk

    def _meet(self, lanes) -> None:
        for notify in self.chunk.observers.exchange:
            notify(lanes)

    def _places(self, lanes) -> tuple[np.ndarray, np.ndarray]:
        chunk = self.chunk
        if lanes is None:
            return chunk.warp_of, chunk.lane_of
        return chunk.warp_of.take(lanes), chunk.lane_of.take(lanes)

    def _matrix(self, values: np.ndarray, lanes, blank=0) -> np.ndarray:
        """Return the lanes' values as an array of shape (warps, 32)."""
        chunk = self.chunk
        if lanes is None and chunk.lanes == WARP_SIZE * chunk.warps:
            return np.broadcast_to(values, chunk.lanes).reshape(-1, WARP_SIZE)
        matrix = np.full((chunk.warps, WARP_SIZE), blank, values.dtype)
        matrix[self._places(lanes)] = values
        return matrix

    def shuffle(self, mode: str, a, b, c, mask, lanes, place: tuple[str, int]) -> tuple[np.ndarray, np.ndarray]:
        """Execute shfl.sync: value of the source lane, and whether that lane lies in the segment. PTX ISA, "shfl.sync".

        `place`: file and line of the instruction.
        """
        self._meet(lanes)
        warp, lane = self._places(lanes)
        lane = lane.astype(np.int64)
        b, c = (np.asarray(x).astype(np.int64) for x in (b, c))
        b, clamp, segment = b & 31, c & 31, (c >> 8) & 31
        lowest = lane & segment
        limit = lowest | (clamp & ~segment)
        source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": lowest | (b & ~segment)}[mode]
        inside = source >= limit if mode == "up" else source <= limit
        source = np.where(inside, source, lane)
        # The value of a source lane outside the group or the mask is undefined; the lane gets its own instead.
        here = self._matrix(np.ones(lane.shape, bool), lanes)[warp, source & 31]
        here &= (np.asarray(mask).astype(np.int64) >> source & 1).astype(bool)
        values = self._matrix(a, lanes)[warp, np.where(here, source, lane)]
        if not here.all():
            values = self.chunk.launch.undefined.shuffled(self.chunk, place, mode, values, lanes, source, ~here)
        return values, inside

    def active(self, lanes) -> np.ndarray:
        """Return activemask: the bits of the warp's lanes in the group, or of each lane alone (`Options`)."""
        if self.chunk.options.lanes_apart:
            return _BITS[self._places(lanes)[1]]
        return self.chunk.group.active

    def ballot(self, predicate, mask, lanes) -> np.ndarray:
        """Execute vote.sync.ballot: the bits of the mask's lanes whose predicate holds."""
        self._meet(lanes)
        warp, _ = self._places(lanes)
        bits = np.where(self._matrix(predicate, lanes, False), _BITS, np.uint32(0))
        return np.bitwise_or.reduce(bits, axis=1)[warp] & self._mask(mask)

    def vote(self, kind: str, predicate, mask, lanes) -> np.ndarray:
        """Execute vote.sync.any, all and uni, as predicates."""
        yes = self.ballot(predicate, mask, lanes)
        if kind == "any":
            return yes != 0
        voters = self._mask(mask) & self.chunk.group.active
        return (yes == voters) if kind == "all" else (yes == voters) | (yes == 0)

    def match_any(self, a, mask, lanes) -> np.ndarray:
        """Execute match.any.sync: the bits of the mask's lanes with the same value."""
        self._meet(lanes)
        warp, _ = self._places(lanes)
        matrix, result = self._matrix(a, lanes), np.zeros(warp.shape, np.uint32)
        for other in range(WARP_SIZE):
            result |= np.where(matrix[warp, other] == a, _BITS[other], np.uint32(0))
        return result & self._mask(mask) & self.chunk.group.active

    def match_all(self, a, mask, lanes) -> tuple[np.ndarray, np.ndarray]:
        """Execute match.all.sync: the mask if all its lanes hold one value, else 0; and whether they do."""
        voters = self._mask(mask) & self.chunk.group.active
        same = self.match_any(a, mask, lanes) == voters
        return np.where(same, voters, np.uint32(0)), same

    def reduce(self, operation: str, a, mask, lanes) -> np.ndarray:
        """Execute redux.sync over the lanes of the mask; integers and float32."""
        self._meet(lanes)
        warp, _ = self._places(lanes)
        function, start = _REDUCTIONS[operation]
        if start is None:
            info = np.iinfo(a.dtype)
            start = info.max if operation == "min" else info.min
        matrix = self._matrix(a, lanes)
        voters = self._mask(mask) & self.chunk.group.active
        result = np.full(warp.shape, np.array(start).astype(a.dtype))
        for other in range(WARP_SIZE):
            taking = (voters >> np.uint32(other)) & np.uint32(1) != 0
            result = np.where(taking, function(result, matrix[warp, other]), result)
        return result

    def elect(self, mask, lanes) -> tuple[np.ndarray, np.ndarray]:
        """Execute elect.sync: the lowest lane of the mask, and whether it is this one."""
        _, lane = self._places(lanes)
        voters = self._mask(mask) & self.chunk.group.active
        lowest = np.bitwise_count((voters & -voters) - np.uint32(1)).astype(np.uint32)
        return lowest, lowest == lane

    @staticmethod
    def _mask(mask) -> np.ndarray:
        return np.asarray(mask, np.uint32)


_BITS = np.uint32(1) << np.arange(WARP_SIZE, dtype=np.uint32)
