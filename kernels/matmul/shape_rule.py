"""Which plan step 10 takes for a product: the one of the shortest time by arithmetic.

    launch + pad + waves × (start + steps × max(multiply-adds, bytes from L2, latency) + results) + fix-up

and not less than the memory takes; where max is a little more than the largest, as what comes near it is in its way.

`tune_plans` measures all plans of many shapes and fits the constants to half of them: plans.json.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernels.matmul.split_k import Plan
from kernels.matmul.tiles import Tiles
from warpcourse.bench.shape_rule import Constants, Rule, Shape, most_of

SHARED_BYTES = 228 * 1024  # of a multiprocessor; each block on it costs 1 KiB more than it asks for
CORES, SCHEDULERS = 128, 4  # of a multiprocessor: the scheduler that has most warps ends last
SHARP = 3  # how near `max` is to the largest
MOST_TURNS = 6  # of parts, which need not be at work at a time
FEW_ROWS = 32  # up to which tiles of few rows, one below the other, may be the fastest
LEAST_PADDED = 60_000  # elements of b

TILES = (
    Tiles(64, 128, 16, 32, 64, 8, 8, 3, 3, 8),
    Tiles(128, 64, 16, 64, 32, 8, 8, 4, 3, 8),
    Tiles(128, 128, 16, 64, 32, 8, 8, 3, 2, 8),
    Tiles(64, 64, 16, 32, 64, 8, 8, 3, 6, 8),
    Tiles(64, 64, 16, 32, 32, 8, 4, 3, 4, 8),
    Tiles(32, 32, 32, 16, 32, 4, 4, 3, 6, 8),
    Tiles(16, 128, 32, 16, 32, 4, 4, 4, 4, 8),
    Tiles(16, 64, 64, 16, 32, 4, 4, 3, 6, 8),
    Tiles(64, 16, 64, 32, 16, 4, 4, 3, 6, 8),
    Tiles(128, 32, 32, 32, 32, 8, 4, 3, 3, 8),
    Tiles(32, 128, 16, 32, 32, 8, 4, 4, 5, 8),
    Tiles(128, 128, 16, 64, 64, 16, 8, 3, 2, 8),
    Tiles(128, 256, 16, 64, 64, 16, 8, 3, 1, 8),
    Tiles(64, 32, 16, 32, 32, 8, 4, 3, 8, 8),
    Tiles(32, 64, 16, 32, 32, 8, 4, 3, 8, 8),
    Tiles(48, 32, 24, 16, 32, 4, 4, 3, 6, 8),
    Tiles(1, 128, 64, 1, 128, 1, 4, 1, 4, 8),
    Tiles(2, 128, 64, 2, 128, 2, 4, 1, 4, 8),
    Tiles(4, 128, 64, 4, 128, 4, 4, 1, 2, 8),
)
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)

# Where the search for constants starts, what was fitted to the times of 2026-11-24: seconds, and seconds for a clock or
# a byte; `eight_by_four` and on are factors.
START = {
    "launch": 2.37e-06,
    "start": 1e-07,  # of a wave: the first tiles arrive
    "clock": 5.92e-10,
    "eight_by_four": 1.09,  # clocks more, where a thread computes 8 × 4 sums and not 8 × 8
    "four_by_four": 1.51,
    "words": 0.5,  # times longer, by the share of b in what is copied, where its rows are copied word by word
    "latency": 1.5e-08,  # of a step, whatever is at work
    "ahead": 1.5e-06,  # from memory, for as many steps as a block has on their way
    "byte": 2.09e-13,  # from L2
    "result_byte": 3.8e-11,  # of a multiprocessor
    "exposed_byte": 3e-11,  # of a block, whose results no other block's products hide
    "other_byte": 5e-13,  # more, where rows of C are stored word by word
    "pad": 2.5e-06,
    "pad_byte": 4.65e-13,
    "meet": 2.49e-06,
    "meet_byte": 1e-12,  # of the last block
    "meet_round": 4.51e-07,
    "part_byte": 2.94e-13,  # of all parts
    "memory_byte": 3.81e-14,
}


def plans(shape: Shape, transposed: str = "NN", multiprocessors: int = 132) -> list[Plan]:
    """Return the plans among which the rule chooses. None takes transposed operands."""
    _, n, k = shape
    pads = (False, True) if n % 4 and k * n > LEAST_PADDED else (False,)
    found = [
        Plan(tiles, parts, pad)
        for tiles in TILES
        for parts in _parts(tiles, shape, multiprocessors)
        for pad in pads
        if not (pad and tiles.few_rows)
    ]
    sensible = [plan for plan in found if _sensible(plan, shape)]
    return sensible or [plan for plan in found if plan.parts == 1]


def _parts(tiles: Tiles, shape: Shape, multiprocessors: int) -> list[int]:
    """Return PARTS, and those with which all multiprocessors have as many blocks, up to two rounds of them."""
    count = _tiles(Plan(tiles), *shape[:2])
    even = {each * multiprocessors // count for each in range(1, 2 * tiles.blocks + 1)}
    return sorted({*PARTS, *(parts for parts in even if 0 < parts <= PARTS[-1])})


def _sensible(plan: Plan, shape: Shape) -> bool:
    """Return whether a plan can compute a product, and leaves neither most of a tile nor most of the GPU empty where
    others do not."""
    m, n, k = shape
    tiles, parts, blocks = plan.tiles, plan.parts, _tiles(plan, m, n) * plan.parts
    if plan.refuses(k) or (tiles.few_rows and (m > FEW_ROWS or tiles.bm > 2 * m - 1)):
        return False
    if (parts > 1 and k < 2 * parts * tiles.bk) or _tiles(plan, m, n) > 40_000:
        return False
    if (tiles.bm > 16 and tiles.bm > 2 * m + 14) or (tiles.bn > 16 and tiles.bn > 2 * n + 14):
        return False
    if 2.0 * m * n * k > 4e10 and tiles.bm * tiles.bn < 64 * 64:
        return False
    few = blocks < 60 and k >= 4 * parts * tiles.bk
    return parts == 1 or (not few and blocks <= MOST_TURNS * 132 * tiles.blocks)


def _tiles(plan: Plan, m: int, n: int) -> int:
    return math.ceil(m / plan.tiles.bm) * math.ceil(n / plan.tiles.bn)


def terms(plan: Plan, shape: Shape, transposed: str = "NN", multiprocessors: int = 132) -> tuple[float, ...]:
    """Return what `estimate` reckons with, of a plan for a shape. Of few rows, eight warps take a step each."""
    m, n, k = shape
    tiles, parts = plan.tiles, plan.parts
    most = min(tiles.blocks, SHARED_BYTES // (tiles.shared_bytes + 1024))  # blocks on a multiprocessor
    blocks, slots = _tiles(plan, m, n) * parts, most * multiprocessors
    full, rest = divmod(blocks, slots)
    last = math.ceil(rest / multiprocessors)  # blocks on a multiprocessor, in the last wave
    size, at_work = tiles.bm * tiles.bn, min(blocks, slots)
    padded = n % 4 > 0 and plan.pad
    words = (n % 4 > 0 and not padded) * tiles.bn / (tiles.bm + tiles.bn)
    meets = parts > 1
    deep = 8 if tiles.few_rows else 1
    at_once = max(1, 64 // (tiles.tm * tiles.tn))  # parts whose sums the last block reads at a time
    return (
        *(full, last, most, (k / parts + tiles.bk) / deep, size * deep / CORES),
        *(tiles.tm * tiles.tn == 32, tiles.tm * tiles.tn <= 16, words, tiles.threads // 32),
        *(
            tiles.bk * max(1, tiles.stages - 1) / deep,
            (tiles.bm + tiles.bn) * 4 * deep * at_work,
            4 * size,
            4 * size * (n % 4 > 0),
        ),
        *(padded, 8 * k * n * padded),
        *(meets, 4 * size * parts * meets, math.ceil(parts / at_once) * meets, 4 * size * at_work * meets),
        4 * (m * k + k * n + m * n),
    )


def estimate(constants: Constants, of: Sequence[Any]) -> Any:
    """Return seconds of a plan from its `terms`, numbers or arrays."""
    full, last, most, steps, clocks, by_four, four, words, warps, ahead, loaded, stored, apart, *rest = of
    pads, padded, meets, met, rounds, written, memory = rest
    c = constants
    clock = c["clock"] * clocks * np.where(by_four, c["eight_by_four"], 1) * np.where(four, c["four_by_four"], 1)
    clock = clock * (1 + words * c["words"])

    def wave(together: Any) -> Any:
        at_work = np.maximum(warps * together, 1)
        uneven = np.where(at_work > SCHEDULERS, np.ceil(at_work / SCHEDULERS) * SCHEDULERS / at_work, 1)
        step = most_of(SHARP, clock * together * uneven + c["latency"], loaded * c["byte"], c["ahead"] / ahead)
        results = stored * (together * c["result_byte"] + c["exposed_byte"]) + together * apart * c["other_byte"]
        return c["start"] + steps * step + results

    body = full * wave(most) + (last > 0) * wave(np.maximum(last, 1))
    body = np.maximum(body, memory * c["memory_byte"])
    fix_up = meets * c["meet"] + met * c["meet_byte"] + rounds * c["meet_round"] + written * c["part_byte"]
    return c["launch"] + pads * c["pad"] + padded * c["pad_byte"] + body + fix_up


RULE = Rule(Path(__file__).parent / "plans.json", Plan, Tiles, plans, terms, estimate, START)
