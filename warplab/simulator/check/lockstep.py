"""Lanes of a warp that rely on lockstep, with `volatile` in place of a `__syncwarp`, as in reductions before 2017.

A volatile load of shared memory that reads what another lane of its warp wrote with a volatile store, with no barrier
and no `__syncwarp` between them, is a race. Kernels with a loop that waits for memory (`turns_on_memory`) are exempt:
their volatile words are flags, and what these guard may be volatile as well.
"""

import numpy as np

from warplab.simulator.check.race_records import RecordedAccess
from warplab.simulator.translate.waiting_loops import turns_on_memory

REASON = (
    "`volatile` does not make the lanes of a warp wait for one another: since compute capability 7.0 (2017) they need "
    "not run in lockstep. Put a __syncwarp() between."
)


def relies_on_it(translation) -> bool:
    """Return whether a kernel can rely on lockstep."""
    return not turns_on_memory(translation.blocks) and any(_may(s) for s in translation.sites if s.op == "store")


def _may(site) -> bool:
    return ".volatile" in site.text and site.space in ("shared", "generic")


class Lockstep:
    """LaneSnapshot wrote each of `words` words of a chunk's shared memory with a volatile store, and when."""

    def __init__(self, words: int) -> None:
        self.writer, self.warp, self.epoch, self.time, self.site = np.zeros((5, words), np.int32)

    def store(self, access: RecordedAccess, word: np.ndarray, unchanged: np.ndarray) -> None:
        """Record a volatile store. `unchanged`: lanes that write what is there already."""
        new = np.broadcast_to(~unchanged, word.shape)
        by, word = access.by, word[new]
        self.writer[word], self.warp[word] = by.thread[new], by.warp[new]
        self.epoch[word], self.time[word] = by.epoch[new], by.time[new]
        self.site[word] = access.site.index

    def load(self, access: RecordedAccess, word: np.ndarray) -> np.ndarray:
        """Return the lanes that read what another lane of their warp wrote, with nothing to order the two."""
        by = access.by
        other = (self.writer[word] != by.thread) & (self.warp[word] == by.warp)
        return other & (self.epoch[word] == by.epoch) & (self.time[word] == by.time)
