"""Launches of lab 10's kernels on one GPU, each rank's alone: what the others would send is there, so nobody waits.

The lab records collectives of several GPUs, whose times are those of the links between them. Here a rank sends into
other memory of the same GPU. Relays by TMA are left out, as copies by TMA are of other labs.
`python -m evidence.estimates.of_labs.collectives` times the launches on a GPU, into recordings.json.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from evidence.estimates.timed_calls import Part, TimedCall, row
from kernels.collectives.relays import FOLDER, OneShotAllReduce, options
from warpcourse.bench import hopper, timing
from warpcourse.bench.recordings import Recordings
from warplab.dropin import choice

RECORDINGS = Recordings("evidence.estimates.of_labs")
KEY = "lab 10, alone"
SMS = 132  # of the GPU of the recordings
NOBODY = np.uint64(0)
SENT = 1.0  # each number that comes from another rank


class Alone(NamedTuple):
    """A launch. `given()`: its arguments, in the memory of the active backend; the first call leaves `want` in that of
    number `out`. `counter`: the number of one that is set to zeros before each further call, if there is such."""

    name: str
    file: str
    entry: str
    grid: int
    block: int
    given: Callable[[], tuple]
    out: int
    want: np.ndarray
    counter: int | None = None

    def kernel(self) -> Any:
        """Return the kernel, on the GPU or the simulator."""
        return hopper.kernel(FOLDER / self.file, self.entry, options())


def _forward(nbytes: int, root: bool, slices: int = 64, blocks: int = SMS, threads: int = 512) -> Alone:
    """Return a rank of a ring broadcast, as `relays.StoreBroadcast` starts it, that has every slice."""
    mine = np.arange(nbytes // 4, dtype=np.float32)

    def given() -> tuple:
        cp = choice.load("cp")
        flags = cp.ones(slices * blocks, np.uint32)
        arrived, before = (NOBODY, NOBODY) if root else (flags.copy(), flags.copy())
        sizes, abort = (np.uint64(nbytes), np.uint32(slices)), NOBODY
        words = arrived, flags, flags.copy(), before, np.uint32(1), abort
        return cp.asarray(mine), cp.zeros(mine.size, mine.dtype), *sizes, *words

    who = "root" if root else "a rank within the ring"
    return Alone(f"forward, {who}, {nbytes:,} bytes", "forward.cu", "forward", blocks, threads, given, 1, mine)


def _all_reduce(entry: str, k: int, nbytes: int) -> Alone:
    """Rank 0 of an all-reduce for small messages, whose inbox has the numbers of all others."""
    two, pairs = entry.startswith("two"), nbytes // 8
    mine = np.arange(2 * pairs, dtype=np.float32) % 99
    want, part = mine + (k - 1) * SENT, 2 * math.ceil(pairs / k)
    if two:
        want[part:] = SENT  # the sums of the others' parts come as they are
    at_once = math.ceil(pairs / k) if two else pairs
    fewest, most = OneShotAllReduce.THREADS
    threads = min(most, max(fewest, math.ceil(at_once / (32 * OneShotAllReduce.BLOCKS)) * 32))
    word = np.uint64(1) << np.uint64(32) | np.uint64(np.float32(SENT).view(np.uint32))  # number and flag of call 1

    def given() -> tuple:
        cp = choice.load("cp")
        slot = math.ceil(pairs / k) * k
        words = 2 * k * slot * 2  # of an inbox
        table = cp.full(k + k * words, word, np.uint64)  # of the addresses of the inboxes, which lie behind it
        table[:k] = cp.asarray(
            np.uint64(hopper.address_of(table))
            + np.uint64(8) * (np.uint64(k) + np.uint64(words) * np.arange(k, dtype=np.uint64))
        )
        ranks = np.uint32(pairs), np.uint32(0), np.uint32(k)
        return (
            cp.asarray(mine),
            cp.zeros(mine.size, mine.dtype),
            *ranks,
            table,
            np.uint64(slot),
            cp.zeros(2, np.uint32),
            NOBODY,
        )

    blocks = min(OneShotAllReduce.BLOCKS, math.ceil(at_once / threads))
    name = f"{entry}, {k} ranks, {nbytes:,} bytes"
    return Alone(name, "one_shot.cu", entry, blocks, threads, given, 1, want, 7)


def _message(takes: bool, n: int, threads: int = 1024) -> Alone:
    """Return a message's source, or its destination, which adds what has come."""
    other = np.arange(n, dtype=np.float32)

    def given() -> tuple:
        cp = choice.load("cp")
        here, there, come = cp.asarray(other), cp.zeros(n, np.float32), cp.ones(1, np.uint32)
        return (there, here, come, np.uint32(n), np.int32(1)) if takes else (here, there, come, np.uint32(n))

    entry, out = ("take_message", 0) if takes else ("send_message", 1)
    return Alone(f"{entry}, {n:,} numbers", "messages.cu", entry, 1, threads, given, out, other)


def _all() -> Iterator[Alone]:
    for power in (20, 23, 26):
        yield _forward(2**power, root=True)
    yield _forward(2**26, root=False)
    for entry, k in (("one_shot_all_reduce", 2), ("one_shot_all_reduce", 8), ("two_shot_all_reduce", 8)):
        for nbytes in (2**12, 2**16, 2**20):
            yield _all_reduce(entry, k, nbytes)
    for takes in (False, True):
        for n in (2**12, 2**16):
            yield _message(takes, n)


LAUNCHES = list(_all())


def first_call(one: Alone) -> tuple[Callable[[], None], bool]:
    """Launch once. Return the launch and whether its result is right."""
    cp, kernel, given = choice.load("cp"), one.kernel(), one.given()

    def call() -> None:
        if one.counter is not None:
            given[one.counter].data.memset_async(0, given[one.counter].nbytes)
        kernel((one.grid,), (one.block,), given)

    kernel((one.grid,), (one.block,), given)
    return call, bool((cp.asnumpy(given[one.out]) == one.want).all())


def measured() -> dict[str, Any]:
    """Time every launch on the GPU, again and again on the same data."""
    rows = []
    for one in LAUNCHES:
        call, correct = first_call(one)
        found = timing.time_gpu(call)
        rows.append({"name": one.name, "seconds": found.seconds, "correct": correct})
    return {"rows": rows}


def _part(one: Alone) -> list[Part]:
    return [Part(one.kernel, one.grid, one.block, one.given)]


TIMED = [
    TimedCall(
        one.name,
        KEY,
        row("rows", name=one.name),
        functools.partial(_part, one),
        fills=int(one.counter is not None),
        warm=True,
        recordings=RECORDINGS,
    )
    for one in LAUNCHES
]

if __name__ == "__main__":
    timing.require_gpu()
    RECORDINGS.write(KEY, timing.rounded(measured()), timing.machine())
