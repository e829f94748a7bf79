"""Loads and stores by lines and sectors of a request, local memory, and copies by TMA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpcourse.bench.sweeps.sweep import LOCAL_WORDS, SMS, WIDTHS, seconds

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
