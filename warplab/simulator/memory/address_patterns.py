"""Address patterns that all warps share: the lanes of each are at the same distances from its first lane.

Most kernels that compute an index from `threadIdx` do so. The cost of one warp is then computed once and multiplied.
"""

import functools
from types import SimpleNamespace

import numpy as np

from warplab.simulator.constants import SECTOR_BYTES, WARP_SIZE
from warplab.simulator.memory.device_memory import ORIGIN
from warplab.simulator.memory.lane_groups import Group

FEWEST = 4  # warps for which looking for a pattern pays off
_BANK_ROW = 128  # bytes


class Pattern:
    """`first`: the address of each warp's first lane. `lane`: the distance of each lane from it. int64 arrays."""

    def __init__(self, first: np.ndarray, lane: np.ndarray) -> None:
        self.first, self.lane = first, lane
        self._key = lane.tobytes()

    @classmethod
    def of(cls, base: np.ndarray, warps: int) -> "Pattern | None":
        """Return the pattern of `base`, uint64 addresses of the lanes of full warps; None if there is none."""
        rows = base.view(np.int64).reshape(warps, WARP_SIZE)
        lane = rows[0] - rows[0, 0]
        for row in (rows[1], rows[-1]):  # most addresses without a pattern fail here
            if (row - row[0] != lane).any():
                return None
        first = rows[:, 0].copy()
        if not (rows == first[:, None] + lane).all():
            return None
        pattern = cls(first, lane)
        return pattern if pattern.low >= 0 else None

    @functools.cached_property
    def low(self) -> int:
        return int(self.first.min()) + int(self.lane.min())

    @functools.cached_property
    def high(self) -> int:
        return int(self.first.max()) + int(self.lane.max())

    @functools.cached_property
    def bits(self) -> int:
        """Return what `Addresses.bits` does."""
        return int(np.bitwise_or.reduce(self.first)) | int(np.bitwise_or.reduce(self.lane))

    def items(self, shift: int) -> np.ndarray:
        """Return what `Addresses.items` does, for elements of 2**shift bytes."""
        return (((self.first & (ORIGIN - 1)) >> shift)[:, None] + (self.lane >> shift)).reshape(-1)

    def distinct(self) -> int:
        return self.first.shape[0] * _pieces(self._key, 0, 1).shape[0]

    def sectors(self, offset: int) -> int:
        """Count distinct 32-byte sectors, summed over warps, of accesses at `offset` that stay within one."""
        phases = np.bincount((self.first + offset) & (SECTOR_BYTES - 1), minlength=SECTOR_BYTES)
        return sum(
            int(phases[phase]) * _pieces(self._key, int(phase), SECTOR_BYTES).shape[0]
            for phase in np.flatnonzero(phases)
        )

    def numbers_of_sectors(self, offset: int) -> np.ndarray | None:
        """Return numbers of the sectors that accesses at `offset` touch, each at least once; None if warps begin at
        different places in a sector."""
        first = self.first + offset
        phase = int(first[0]) & (SECTOR_BYTES - 1)
        if ((first & (SECTOR_BYTES - 1)) != phase).any():
            return None
        return (first // SECTOR_BYTES)[:, None] + _pieces(self._key, phase, SECTOR_BYTES)

    def wavefronts(self, offset: int, width: int, op: str) -> tuple[int, int] | None:
        """Return what `Addresses.wavefronts` does; None where warps begin at different places in a word."""
        phase = int(self.first[0] + offset) & 3
        if ((self.first + offset & 3) != phase).any():
            return None
        passes, needed = _bank_passes(self._key, phase, width, op)
        return passes * self.first.shape[0], needed * self.first.shape[0]


@functools.lru_cache(maxsize=4096)
def _pieces(lane: bytes, phase: int, size: int) -> np.ndarray:
    """Return the numbers of distinct pieces of `size` bytes that a warp touches if it begins `phase` bytes into one."""
    return np.unique((np.frombuffer(lane, np.int64) + phase) // size)


@functools.lru_cache(maxsize=4096)
def _bank_passes(lane: bytes, phase: int, width: int, op: str) -> tuple[int, int]:
    distance = np.frombuffer(lane, np.int64) + phase
    distance -= int(distance.min()) // _BANK_ROW * _BANK_ROW
    return _ONE_WARP.count_bank_passes(distance >> 2, -(-width // 4), op)


_LANES = np.arange(WARP_SIZE)
_ONE_WARP = Group(
    SimpleNamespace(lanes=WARP_SIZE, warps=1, warp_of=np.zeros(WARP_SIZE, np.int64), lane_of=_LANES.astype(np.uint32)),
    None,
)
