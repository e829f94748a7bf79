"""Lanes of a warp that count on lock step: with `volatile` for a `__syncwarp`, as reductions had it before 2017.

A volatile load of shared memory that reads what another lane of its warp wrote by a volatile store, with no barrier and
no `__syncwarp` between the two, is a race. Kernels with a loop that waits for memory are left alone: there volatile
words are flags, and what they guard may be volatile as well.
"""

from __future__ import annotations

import numpy as np

from warplab.simulator.check.race_records import Event

REASON = (
    "`volatile` does not let the lanes of a warp wait for one another: from compute capability 7.0 on (2017) they need "
    "not run in step. Put a __syncwarp() between."
)


def relies_on_it(translation) -> bool:
    """Can a kernel do so?"""
    return not translation.waiting_loops and any(_may(site) for site in translation.sites if site.op == "store")


def _may(site) -> bool:
    return ".volatile" in site.text and site.space in ("shared", "generic")


class Lockstep:
    """Who wrote each of `words` words of a chunk's shared memory by a volatile store, and when."""

    def __init__(self, words: int) -> None:
        self.writer, self.warp, self.epoch, self.time, self.site = np.zeros((5, words), np.int32)

    def store(self, event: Event, word: np.ndarray, unchanged: np.ndarray) -> None:
        """`unchanged`: lanes that write what is there already."""
        new = np.broadcast_to(~unchanged, word.shape)
        who, word = event.who, word[new]
        self.writer[word], self.warp[word] = who.thread[new], who.warp[new]
        self.epoch[word], self.time[word] = who.epoch[new], who.time[new]
        self.site[word] = event.site.index

    def load(self, event: Event, word: np.ndarray) -> np.ndarray:
        """Lanes that read what another lane of their warp wrote, with nothing to order the two."""
        who = event.who
        other = (self.writer[word] != who.thread) & (self.warp[word] == who.warp)
        return other & (self.epoch[word] == who.epoch) & (self.time[word] == who.time)
