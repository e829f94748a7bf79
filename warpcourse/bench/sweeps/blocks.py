"""Blocks and barriers: starts, gaps between blocks, costs of barriers, uneven work, and the clock under load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpcourse.bench.lab_kernels import launch
from warpcourse.bench.sweeps.sweep import SMS, SOURCES, cycles, seconds

FILE = "blocks.cu"
WARPS = (1, 2, 4, 8, 16, 32)  # of a block
KIB = 1024


def starts() -> Iterator[dict[str, Any]]:
    """Measure seconds of blocks that do nothing."""
    for warps in WARPS:
        for shared in (0, 4 * KIB, 16 * KIB, 48 * KIB):
            blocks = 2**18 if shared < 16 * KIB else 2**16
            time = seconds(FILE, "nothing", blocks, 32 * warps, (np.uint64(0),), shared)
            yield {"warps": warps, "shared_bytes": shared, "blocks": blocks, "seconds": time}


def gaps(waves: int = 24, steps: int = 16) -> Iterator[dict[str, Any]]:
    """Measure clocks from a block's end until one starts that takes its place, where 1, 2 or 4 fit on an SM.

    `gap`: the median. `spread`: from the start of a block's first warp to that of its last.
    """
    import cupy

    function, out = SOURCES.function(FILE, "gaps"), cupy.zeros(1, np.float32)
    function.max_dynamic_shared_size_bytes = 219 * KIB
    for warps in WARPS:
        for resident in (1, 2, 4):
            if resident * warps <= 64:
                blocks = SMS * resident * waves
                times, sm = cupy.zeros((blocks, warps, 2), np.int64), cupy.zeros((blocks, warps), np.uint32)
                arguments = (np.int32(steps), times, sm, out)
                for _ in range(2):
                    launch(function, blocks, 32 * warps, arguments, (220 // resident - 1) * KIB)
                begin, end = cupy.asnumpy(times[:, :, 0]), cupy.asnumpy(times[:, :, 1]).max(1)
                where, found = cupy.asnumpy(sm)[:, 0], []
                for one in range(SMS):
                    starts, ends = np.sort(begin[where == one].min(1)), np.sort(end[where == one])
                    found += (starts[resident:] - ends[: max(0, starts.size - resident)]).tolist()
                yield {
                    "warps": warps,
                    "resident": resident,
                    "steps": steps,
                    "gap": float(np.median(found)),
                    "spread": float(np.median(np.ptp(begin, axis=1))),
                }


def barriers(rounds: int = 512) -> Iterator[dict[str, Any]]:
    """Measure cycles from a barrier to the next, with nothing or a word through shared memory (`step`) between them."""
    for step in (0, 1):
        for warps in WARPS:
            for blocks in (1, 2, 4, 8, 16, 32):
                if warps * blocks <= 64:
                    spent = cycles(FILE, "barriers", blocks * SMS, 32 * warps, (np.int32(rounds), np.int32(step)))
                    yield {"step": step, "warps": warps, "blocks": blocks, "cycles": spent / rounds}


def uneven() -> Iterator[dict[str, Any]]:
    """Measure seconds where warps make different numbers of steps of 16 dependent multiply-adds.

    `steps`: how many, in turns of blocks or of warps; drawn from an exponential distribution by seed 1.
    """
    import cupy

    drawn = np.random.default_rng(1).exponential(256, 4096).astype(np.int32) + 1
    cases = {
        "alike": np.full(4096, 256, np.int32),
        "one block in 64 makes 10 times as many": np.repeat(np.where(np.arange(4096) % 64 == 0, 2560, 256), 8)[:32768],
        "one warp in 8 makes 10 times as many": np.where(np.arange(4096) % 8 == 0, 2560, 256),
        "exponential by blocks": np.repeat(drawn, 8),
        "exponential by warps": drawn,
    }
    out = cupy.zeros(1, np.float32)
    for name, steps in cases.items():
        for blocks in (SMS, 8 * SMS, 32 * SMS, 4096):
            data = cupy.asarray(steps.astype(np.int32))
            time = seconds(FILE, "uneven", blocks, 256, (data, np.int32(steps.size), out))
            yield {"steps": name, "blocks": blocks, "seconds": time}


def clocks(launches: int = 6) -> Iterator[dict[str, Any]]:
    """Measure clocks per second while all multiprocessors do one thing, in launches of some 30 ms after each other."""
    import cupy

    rng = np.random.default_rng(2)
    random = cupy.asarray(rng.standard_normal(256 * 12).astype(np.float16).view(np.uint32))
    spent, out = cupy.zeros(4 * 8 * SMS, np.uint64), cupy.zeros(1, np.float32)
    for what, arguments, steps in (("ffma", (), 200000), ("mma", (random,), 100000)):
        name = "clock_under_load" if what == "ffma" else "clock_under_mma"
        for number in range(launches):
            launch(SOURCES.function(FILE, name), 8 * SMS, 256, (np.int32(steps), *arguments, spent, out))
            clocks, time = cupy.asnumpy(spent)[: 16 * SMS].reshape(-1, 2).astype(np.float64).T
            yield {
                "what": what,
                "launch": number,
                "hz": float(np.median(clocks / time) * 1e9),
                "seconds": time.max() / 1e9,
            }
