"""The GPU kernels of this lab that run on all ranks at once: their launches, their mailboxes, their limits.

An object holds what the ranks tell each other, from launch to launch. `launch(buffers)` queues one launch per rank on
the ranks' streams and returns at once; `ranks.wait` waits, with a time limit. After a GpuTimeout what the mailboxes say
is void: make a new object.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernels.collectives import ring_forwarding
from kernels.collectives.gpu_ranks import Ranks
from kernels.collectives.ring_forwarding import RingForwarding
from warpcourse.bench import hopper

FOLDER = Path(__file__).parent
MAILBOX_WORDS = 64  # struct Mailbox of relay.cuh: 256 bytes
MOST_STAGES = 31
SHARED_BYTES = 227 * 1024  # of a block, compute capability 9.0
_NOBODY = np.uint64(0)


def options(**defines: int) -> tuple[str, ...]:
    """Return NVRTC's options for this folder's headers and `-DNAME=value` for each name."""
    return (f"-I{FOLDER}", *(f"-D{name}={value}" for name, value in defines.items()))


def _kernel(file: str, entry: str, **defines: int) -> Any:
    """Return a kernel for the current GPU. Raise NotOnThisCard where it is not Hopper."""
    hopper.require(f"The machine code of {file}", "the engine on_gpus, which copies by the driver")
    return hopper.kernel(FOLDER / file, entry, options(**defines))


class _Relay:
    """What broadcast and all-reduce by relay.cuh share. `blocks` per rank must all be on its GPU at once."""

    FILE: str
    ENTRY: str

    def __init__(
        self, ranks: Ranks, *, blocks: int | None = None, piece: int = 32768, stages: int = 6, **defines: Any
    ) -> None:
        self.ranks, self.blocks = ranks, _blocks(ranks, blocks)
        self._threads, self._shared = 32 * stages, piece * stages
        if piece % 16 or piece < 16 or not 0 < stages <= MOST_STAGES or self._shared > SHARED_BYTES - 1024:
            raise ValueError(
                f"{stages} stages of {piece} bytes: give 1 to {MOST_STAGES} stages, pieces of a multiple of 16 bytes, "
                f"and no more than {SHARED_BYTES - 1024} bytes in all"
            )
        self._kernels, self.boxes = [], []
        for rank in range(len(ranks)):
            with ranks.on(rank) as stream:
                self._kernels.append(_kernel(self.FILE, self.ENTRY, PIECE=piece, STAGES=stages, **defines))
                self.boxes.append(ranks.cupy.zeros(self.blocks * MAILBOX_WORDS, np.uint32))
                stream.synchronize()

    def _start(self, rank: int, *arguments: Any) -> None:
        with self.ranks.on(rank):
            given = (*arguments, self.ranks.abort)
            self._kernels[rank]((self.blocks,), (self._threads,), given, self._shared)


def _blocks(ranks: Ranks, blocks: int | None) -> int:
    """Return the blocks per rank; if not given, as many as a GPU has SMs for each of its ranks. Raise ValueError."""
    room = hopper.multiprocessors() // max(ranks.devices.count(device) for device in ranks.devices)
    if blocks is not None and not 0 < blocks <= room:
        raise ValueError(f"{blocks} blocks per rank: only {room} fit on a GPU at once, one per multiprocessor")
    return blocks or room


def _bytes(ranks: Ranks, buffers: Sequence[Any]) -> np.uint64:
    """Return the buffers' size. Raise ValueError unless there is one per rank, all of one size, in whole 16 bytes."""
    sizes = {buffer.nbytes for buffer in buffers}
    if len(buffers) != len(ranks) or len(sizes) != 1 or min(sizes) % 16:
        raise ValueError(
            f"buffers of {sorted(sizes)} bytes for {len(ranks)} ranks: give one per rank, all of one size, a "
            "multiple of 16 bytes"
        )
    return np.uint64(sizes.pop())


class TmaBroadcast(_Relay):
    """Rank 0's buffer to all, along the ring 0, 1, ..., k - 1."""

    FILE, ENTRY = "forward_tma.cu", "forward_tma"

    def launch(self, buffers: Sequence[Any], skip: Sequence[int] = ()) -> None:
        """Queue a broadcast. `buffers`: CuPy arrays, one per rank, on its GPU. `skip`: ranks that fail to take part."""
        size, last = _bytes(self.ranks, buffers), len(self.ranks) - 1
        for rank in (rank for rank in range(last + 1) if rank not in skip):
            following = buffers[rank + 1] if rank < last else _NOBODY
            theirs = self.boxes[rank + 1] if rank < last else _NOBODY
            before = self.boxes[rank - 1] if rank else _NOBODY
            self._start(rank, buffers[rank], following, size, self.boxes[rank], theirs, before)


class TmaAllReduce(_Relay):
    """The sum of all buffers to all ranks, in place, float32, along the ring. `together`: rounds side by side."""

    FILE, ENTRY = "all_reduce_tma.cu", "all_reduce_tma"

    def __init__(self, ranks: Ranks, *, together: int = 4, **settings: Any) -> None:
        super().__init__(ranks, TOGETHER=together, **settings)

    def launch(self, buffers: Sequence[Any]) -> None:
        """Queue an all-reduce. `buffers`: CuPy arrays of float32, one per rank, on its GPU."""
        size, k = _bytes(self.ranks, buffers), len(self.ranks)
        _require_float32(buffers)
        for rank in range(k):
            after, where = (rank + 1) % k, (np.uint32(rank), np.uint32(k))
            boxes = self.boxes[rank], self.boxes[after], self.boxes[rank - 1]
            self._start(rank, buffers[rank], buffers[after], size, *where, *boxes)


class StoreBroadcast:
    """Rank 0's buffer to all, along the ring, by forward.cu: threads load and store, 512 in a block. All blocks of a
    rank must be on its GPU at once, of which there is at most one per multiprocessor.
    """

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self._kernels = ranks, []
        for rank in range(len(ranks)):
            with ranks.on(rank):
                self._kernels.append(_kernel(ring_forwarding.FILE, ring_forwarding.ENTRY, UNROLL=4))
        self._ring = RingForwarding(
            range(len(ranks)),
            slices=64,
            blocks=_blocks(ranks, None),
            threads=512,
            flags=self._flags,
            start=self._start,
            abort=[ranks.abort] * len(ranks),
        )

    def launch(self, buffers: Sequence[Any], skip: Sequence[int] = ()) -> None:
        """Queue a broadcast. `buffers`: CuPy arrays, one per rank, on its GPU. `skip`: ranks that fail to take part."""
        self._ring.launch(buffers, int(_bytes(self.ranks, buffers)), skip)

    def _flags(self, rank: int, n: int) -> Any:
        with self.ranks.on(rank) as stream:
            found = self.ranks.cupy.zeros(n, np.uint32)
            stream.synchronize()
        return found

    def _start(self, rank: int, grid: int, block: int, arguments: tuple) -> None:
        with self.ranks.on(rank):
            self._kernels[rank]((grid,), (block,), arguments)


class OneShotAllReduce:
    """The sum of all inputs to all ranks, for small messages; every rank gets the same bits. `limit`: bytes."""

    ENTRY = "one_shot_all_reduce"
    BLOCKS = 128
    THREADS = 256, 1024  # of a block, fewest and most

    def __init__(self, ranks: Ranks, limit: int = 2**20) -> None:
        k = len(ranks)
        self.ranks, self._slot = ranks, -(-limit // (8 * k)) * k  # pairs, in whole parts
        self._kernels, self._inboxes, self._calls = [], [], []
        for rank in range(k):
            with ranks.on(rank) as stream:
                self._kernels.append(_kernel("one_shot.cu", self.ENTRY))
                self._inboxes.append(ranks.cupy.zeros(2 * k * self._slot * 2, np.uint64))
                self._calls.append(ranks.cupy.zeros(2, np.uint32))
                stream.synchronize()
        addresses = np.array([inbox.data.ptr for inbox in self._inboxes], np.uint64)
        self._tables = ranks.put([addresses] * k)

    def launch(self, inputs: Sequence[Any], outputs: Sequence[Any], skip: Sequence[int] = ()) -> None:
        """Queue an all-reduce of float32. `skip`: ranks that fail to take part."""
        _require_float32([*inputs, *outputs])
        k, sizes = len(self.ranks), {array.size for array in (*inputs, *outputs)}
        (n,) = sizes if len(sizes) == 1 else (0,)
        if n % 2 or not 0 < n <= 2 * self._slot or not len(inputs) == len(outputs) == k:
            raise ValueError(
                f"{len(inputs)} inputs, {len(outputs)} outputs of {sorted(sizes)} elements: give {k} of each, all of "
                f"one even number, at most {2 * self._slot}"
            )
        pairs = n // 2
        fewest, most = self.THREADS
        at_once = self._at_once(pairs)
        threads = min(most, max(fewest, -(-at_once // (32 * self.BLOCKS)) * 32))
        blocks = min(self.BLOCKS, _blocks(self.ranks, None), -(-at_once // threads))  # all on the GPUs at once
        for rank in (rank for rank in range(k) if rank not in skip):
            with self.ranks.on(rank):
                arguments = (
                    *(inputs[rank], outputs[rank], np.uint32(pairs), np.uint32(rank), np.uint32(k)),
                    *(self._tables[rank], np.uint64(self._slot), self._calls[rank], self.ranks.abort),
                )
                self._kernels[rank]((blocks,), (threads,), arguments)

    def _at_once(self, pairs: int) -> int:
        """Return how many pairs a rank's threads have side by side."""
        return pairs


class TwoShotAllReduce(OneShotAllReduce):
    """The same in two trips over the links, each rank adding a k-th of the buffer: for k > 2, from some 256 KiB on."""

    ENTRY = "two_shot_all_reduce"

    def _at_once(self, pairs: int) -> int:
        return -(-pairs // len(self.ranks))


def _require_float32(arrays: Sequence[Any]) -> None:
    if wrong := {array.dtype.name for array in arrays} - {"float32"}:
        raise TypeError(f"arrays of {', '.join(sorted(wrong))}: this kernel adds float32")
