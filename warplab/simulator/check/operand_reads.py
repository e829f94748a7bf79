"""Which pieces of shared memory each warpgroup's wgmma has read, and when: who writes there must know that it is over.

`race_words` keeps of several readers of a word two times at most, before which none of them read last: enough for most
loads, but a wgmma reads until its warpgroup waits, and tiles are read by several. Here each warpgroup has a time of its
own for each 16 bytes. `vector_clocks` know who has heard of it.
"""

from typing import Any

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
        self.site = np.zeros(shape[1], np.int32)  # the latest that read
        # Where in `latest` the pieces of each lane's warpgroup begin.
        self.begin = (np.arange(chunk.lanes) - chunk.block_of * chunk.threads) // THREADS * shape[1]

    def barrier(self, lanes: np.ndarray | None) -> None:
        """Note a barrier of whole blocks, which the clocks count already."""
        self.passed[slice(None) if lanes is None else self.chunk.block_of[lanes]] = self.clocks.now

    def read(self, site: Any, piece: np.ndarray, lanes: np.ndarray) -> None:
        """Note that warpgroups, in whose name `lanes` read, do so from these pieces on."""
        self.latest.reshape(-1)[self.begin[lanes] + piece] = self.clocks.now + 1
        self.site[piece] = site.index

    def unaware(self, start: np.ndarray, lanes: np.ndarray, ends: bool) -> np.ndarray | None:
        """Return, for each of `lanes` that is about to write at `start`, a lane whose warpgroup may still read there as
        far as it knows, or -1; None for -1 throughout. If the writes end that, these reads no longer count.

        A write of some bytes of a piece does not: they still count for whoever writes the others. Those who come after
        such a write know of the reads before it, too."""
        chunk, piece = self.chunk, start // PIECE
        times = self.latest[:, piece]
        if not times.any():
            return None
        if ends:
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

    def fields(self, word: int) -> dict[str, Any]:
        """Return what `machine_access.PLACE` holds of it, for words of so many bytes."""
        sizes = {"PIECE_SHIFT": (PIECE // word).bit_length() - 1, "BLOCK_PIECES": self.chunk.shared_stride // PIECE}
        sizes |= {"GROUPS": self.latest.shape[0], "PIECES": self.latest.shape[1], "THREADS": self.chunk.threads}
        return {**sizes, "OPERANDS": self.latest, "PASSED": self.passed}
