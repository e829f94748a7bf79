"""Which pieces of shared memory each warpgroup's wgmma has read, and when: who writes there must know that it is over.

`race_words` keeps of several readers of a word two times at most, before which none of them read last: enough for most
loads, but a wgmma reads until its warpgroup waits, and tiles are read by several. Here each warpgroup has a time of its
own for each 16 bytes. `vector_clocks` know who has heard of it.
"""

import numpy as np

from warplab.simulator.check.vector_clocks import Clocks
from warplab.simulator.memory.tensor_maps import PIECE
from warplab.simulator.translate.warpgroup_instructions import THREADS


class OperandReads:
    """Of the warpgroups of one chunk."""

    def __init__(self, chunk, clocks: Clocks) -> None:
        self.chunk, self.clocks = chunk, clocks
        shape = -(-chunk.threads // THREADS), -(-chunk.access.shared.nbytes // PIECE)
        self.latest = np.zeros(shape, np.int32)  # read by each warpgroup of the block, plus 1; 0 for never
        self.passed = np.zeros(chunk.blocks, np.int32)  # when each block last passed a barrier
        self._groups: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # of lanes that have read, which recur

    def barrier(self, lanes: np.ndarray | None) -> None:
        """Note a barrier of whole blocks, which the clocks count already."""
        self.passed[slice(None) if lanes is None else self.chunk.block_of[lanes]] = self.clocks.now

    def read(self, start: np.ndarray, lanes: np.ndarray) -> None:
        """Note that warpgroups, in whose name `lanes` read, do so from the bytes at `start` on."""
        found = self._groups.get(lanes.shape[0])
        if found is None or found[0] is not lanes:
            found = lanes, (lanes - self.chunk.block_of[lanes] * self.chunk.threads) // THREADS
            self._groups[lanes.shape[0]] = found
        self.latest[found[1], start // PIECE] = self.clocks.now + 1

    def unaware(self, start: np.ndarray, lanes: np.ndarray) -> np.ndarray | None:
        """Return, for each of `lanes` that is about to write at `start`, a lane whose warpgroup may still read there as
        far as it knows, or -1; None for -1 throughout. Then these reads no longer count."""
        chunk, piece = self.chunk, start // PIECE
        times = self.latest[:, piece]
        if not times.any():
            return None
        self.latest[:, piece] = 0
        block = start // chunk.shared_stride
        passed = (chunk.block_of[lanes] == block) & (times <= self.passed[block])
        if passed.all():
            return None
        found = np.full(lanes.shape, -1)
        for group, time in enumerate(times):
            other = block * chunk.threads + group * THREADS
            found[~(passed[group] | self.clocks.knows(lanes, other, time - 1))] = group
        return np.where(found < 0, -1, block * chunk.threads + found * THREADS)
