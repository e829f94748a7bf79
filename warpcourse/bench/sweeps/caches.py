"""Loads and stores by lines and sectors of a request, local memory, and copies by TMA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpcourse.bench.sweeps.sweep import LOCAL_WORDS, SMS, WALKS, WIDTHS, cycles, seconds

PER_LINE = (1, 2, 4, 8, 16, 32)  # lanes that share a line
LINE = 128
MEMORY = {"L2": 2**23, "memory": 2**30}  # bytes


def l1_hits(rounds: int = 512) -> Iterator[dict[str, Any]]:
    """Measure seconds of loads that hit the L1. `requests`: of each of the multiprocessors. `lines`: of a request."""
    import cupy

    data, out = cupy.zeros(2**20, np.uint8), cupy.zeros(1024, np.uint32)
    for size, kind in WIDTHS.items():
        for per_line in PER_LINE:
            for skew in (0, 1):
                arguments = (data, np.uint32(per_line), np.uint32(skew), np.int32(0), np.int32(rounds), out)
                for blocks in (1, 2):
                    time = seconds("caches.cu", f"l1_hits<{kind}>", blocks * SMS, 1024, arguments)
                    yield {
                        "bytes": size,
                        "lines": 32 // per_line,
                        "skew": skew,
                        "warps": 32 * blocks,
                        "requests": 32 * blocks * rounds,
                        "seconds": time,
                    }


def conflicts(rounds: int = 512) -> Iterator[dict[str, Any]]:
    """Measure clocks from a load that hits the L1 to the next that needs its result, each lane's word `stride` words
    from its neighbour's."""
    import cupy

    data = cupy.zeros(2**16, np.int32)
    for warps in (1, 4):
        for stride in (0, 1, 2, 4, 8, 16, 32, 33, 40, 48, 250, 257):
            arguments = (data, np.int32(stride), np.int32(rounds))
            spent = cycles("caches.cu", "lanes_chase", 1, 32 * warps, arguments)
            yield {"warps": warps, "stride": stride, "latency": spent / rounds}


def scattered(rounds: int = 32) -> Iterator[dict[str, Any]]:
    """Measure seconds of loads and stores at random lines of the L2 or of memory. `requests`: of all
    multiprocessors."""
    import cupy

    out = cupy.zeros(1024, np.uint32)
    for place, nbytes in MEMORY.items():
        data = cupy.zeros(nbytes, np.uint8)
        for size, kind in WIDTHS.items():
            for per_line in PER_LINE:
                if per_line * size > LINE:
                    continue
                for name in ("l2_loads", "l2_stores"):
                    bits = np.uint32((nbytes // LINE).bit_length() - 1)
                    arguments = (data, np.uint32(per_line), bits, np.int32(rounds), out)
                    time = seconds("caches.cu", f"{name}<{kind}>", 8 * SMS, 256, arguments)
                    yield {
                        "access": name,
                        "place": place,
                        "bytes": size,
                        "lines": 32 // per_line,
                        "requests": 64 * SMS * rounds,
                        "seconds": time,
                    }


def in_order() -> Iterator[dict[str, Any]]:
    """Measure seconds of loads and stores in order. `run`: of a thread, one after the other; `apart`: bytes from one
    thread's to the next's; `requests`: of all multiprocessors."""
    import cupy

    out, threads = cupy.zeros(1024, np.uint32), 8 * SMS * 256
    alone = [(4, 1, apart) for apart in (32, 64, 128, 256, 1024)]
    for place, nbytes in MEMORY.items():
        data = cupy.zeros(nbytes, np.uint8)
        runs = [
            (size, count, size * count) for size in (4, 16) for count in (1, 2, 4, 8, 16, 32) if size * count <= 128
        ]
        for name, cases in (("stores", [*runs, *alone]), ("loads", alone)):
            for size, run, apart in cases:
                rounds = max(4, -(-nbytes // apart // threads), 32 if place == "L2" else 0)
                tail = (np.uint32(apart // size), np.uint32(nbytes // apart - 1), np.int32(rounds))
                stores = name == "stores"
                entry = f"{'store_runs' if stores else 'loads_apart'}<{WIDTHS[size]}>"
                arguments = (data, np.uint32(run), *tail) if stores else (data, *tail, out)
                time = seconds("caches.cu", entry, 8 * SMS, 256, arguments)
                requests = threads // 32 * rounds * run
                yield {
                    "access": name,
                    "place": place,
                    "bytes": size,
                    "run": run,
                    "apart": apart,
                    "requests": requests,
                    "seconds": time,
                }


def streams(nbytes: int = 2**29) -> Iterator[dict[str, Any]]:
    """Measure seconds of reading and writing arrays of `nbytes` each, an element of each in a thread."""
    import cupy

    data, out = cupy.zeros(4 * nbytes, np.uint8), cupy.zeros(1024, np.uint32)
    for size, kind in WIDTHS.items():
        for reads, writes in ((1, 0), (3, 0), (3, 1), (2, 1), (1, 1), (1, 2), (0, 1)):
            n = nbytes // size
            arguments = (data, np.uint32(n), np.int32(reads), np.int32(writes), out)
            time = seconds("caches.cu", f"streams<{kind}>", n // 256, 256, arguments)
            row = {"bytes": size, "reads": reads, "writes": writes, "nbytes": (reads + writes) * nbytes}
            yield row | {"seconds": time}


def spread(rounds: int = 32) -> Iterator[dict[str, Any]]:
    """Measure seconds of loads and stores of single words in random lines of so many MiB, by how many these are."""
    import cupy

    out, data = cupy.zeros(1024, np.uint32), cupy.zeros(2**34, np.uint8)
    for bits in range(16, 28):
        for name in ("l2_loads", "l2_stores"):
            arguments = (data, np.uint32(1), np.uint32(bits), np.int32(rounds), out)
            time = seconds("caches.cu", f"{name}<Load4>", 8 * SMS, 256, arguments)
            yield {"access": name, "mib": LINE << bits >> 20, "requests": 64 * SMS * rounds, "seconds": time}


def walks(words: int = 2**14) -> Iterator[dict[str, Any]]:
    """Measure cycles for each word of a list that the warps of a block walk through, all the same or `own` ones."""
    import cupy

    data = cupy.zeros(8 * words, np.uint32)
    for ahead in WALKS:
        for warps, own in ((1, 0), (8, 0), (32, 0), (8, 1)):
            spent = cycles("caches.cu", f"lists<{ahead}>", SMS, 32 * warps, (data, np.int32(words), np.int32(own)))
            yield {"ahead": ahead, "warps": warps, "own": own, "cycles": spent / words}


def local_memory(rounds: int = 256) -> Iterator[dict[str, Any]]:
    """Measure seconds of `requests` loads and as many stores of 4 bytes, each multiprocessor's, in arrays of
    `words`."""
    import cupy

    out = cupy.zeros(1024, np.uint32)
    for words in LOCAL_WORDS:
        for warps in (8, 32, 64):
            arguments = (np.int32(rounds), np.int32(5), out)
            time = seconds("caches.cu", f"local_words<{words}>", warps // 8 * SMS, 256, arguments)
            yield {"words": words, "warps": warps, "requests": warps * rounds, "seconds": time}


def bulk_copies() -> Iterator[dict[str, Any]]:
    """Measure seconds of copies by TMA to shared memory, four under way in each block. `copies`: of all blocks."""
    import cupy

    out = cupy.zeros(8 * SMS, np.uint32)
    for place, nbytes in MEMORY.items():
        data = cupy.zeros(nbytes, np.uint8)
        for size in (512, 2048, 8192, 16384):
            for blocks in (1, 2):
                rounds = max(64, 2**20 // size)
                mask = np.uint32(nbytes // size - 1)
                arguments = (data, np.uint32(size), mask, np.int32(rounds), out)
                time = seconds("caches.cu", "bulk_copies", blocks * SMS, 32, arguments, 4 * size)
                yield {
                    "place": place,
                    "bytes": size,
                    "blocks": blocks,
                    "copies": blocks * SMS * rounds,
                    "seconds": time,
                }
