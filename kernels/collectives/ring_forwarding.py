"""The launches of forward.cu: its flags, its geometry, and the number of the launch that all ranks share.

The same on virtual devices and on GPUs: only how memory is made and how a kernel starts differs, which the caller says.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FILE, ENTRY = "forward.cu", "forward"
SOURCE = (Path(__file__).parent / FILE).read_text(encoding="utf-8")
_NOBODY = np.uint64(0)
_MOST_THREADS = 1024


class RingForwarding:
    """The flags of a ring of k ranks, which last from launch to launch. `slices`, `blocks`, `threads`: of every rank.

    `order`: the ranks in the order of the ring, the root first. `flags(rank, n)`: makes n zeros of uint32 in the
    memory of a rank. `start(rank, grid, block, arguments)`: queues the kernel on the rank's device; all launches must
    be queued before anyone waits for one. `abort`: for each rank the word by which the host ends the kernels, an array
    or an address. Raises ValueError for sizes out of range.
    """

    def __init__(
        self,
        order: Sequence[int],
        *,
        slices: int,
        blocks: int,
        threads: int,
        flags: Callable[[int, int], Any],
        start: Callable[[int, int, int, tuple], Any],
        abort: Sequence[Any],
    ) -> None:
        if slices < 1 or blocks < 1:
            raise ValueError(f"{slices} slices and {blocks} blocks per rank: give at least one of each")
        if not 16 <= threads <= _MOST_THREADS:
            raise ValueError(f"{threads} threads per block: give 16 to {_MOST_THREADS}")
        self.order, self.slices, self.blocks, self.threads = tuple(order), slices, blocks, threads
        self.launches = 0
        self._start, self._abort = start, abort
        self.arrived = {rank: flags(rank, slices * blocks) for rank in self.order[1:]}
        self.started = {rank: flags(rank, blocks) for rank in self.order[:-1]}

    def launch(self, buffers: Sequence[Any], nbytes: int, skip: Sequence[int] = ()) -> None:
        """Queue a broadcast of the root's first `nbytes` bytes, one launch per rank.

        `buffers`: arrays on the devices, by rank. `skip`: ranks that fail to take part.
        """
        self.launches += 1
        for place, rank in enumerate(self.order):
            if rank in skip:
                continue
            before = self.order[place - 1] if place else None
            after = self.order[place + 1] if place + 1 < len(self.order) else None
            arguments = (
                *(buffers[rank], _NOBODY if after is None else buffers[after]),
                *(np.uint64(nbytes), np.uint32(self.slices)),
                *(self.arrived.get(rank, _NOBODY), _NOBODY if after is None else self.arrived[after]),
                *(self.started.get(rank, _NOBODY), _NOBODY if before is None else self.started[before]),
                *(np.uint32(self.launches % 2**32), self._abort[rank]),
            )
            self._start(rank, self.blocks, self.threads, arguments)
