"""Which plan step 7 takes for a product: the one of the shortest time by arithmetic.

    launch + pad + waves × (start + steps × max(products, bytes from L2, latency) + results) + fix-up

and not less than the memory takes; where max is a little more than the largest, as what comes near it is in its way.
Of two blocks on a multiprocessor one stores its results while the other multiplies.

`tune_plans` measures all plans of many shapes and fits the constants to half of them: plans.json.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernels.tensor_core.every_shape import ANY_ROWS, ANY_SPLITS, SPREAD, WIDE, Plan, Tile
from kernels.tensor_core.tiles import DEPTH
from warpcourse.bench.shape_rule import Constants, Rule, Shape, most_of

LINE = 64  # elements of float16 in a line of the L2 cache
PRODUCTS, SHARED_BANDWIDTH = 2048, 128  # of a multiprocessor in a clock, and bytes of its shared memory

ALONE = (
    *(Tile(64, 64, 1, 4, 3), Tile(64, 64, 1, 8), Tile(64, 64, 1, 12), Tile(64, 128, 1, 8), Tile(128, 64, 2, 8)),
    *(Tile(128, 128, 2, 6), Tile(128, 128, 2, 3, 2), Tile(192, 128, 3, 4), Tile(64, 256, 1, 5), Tile(128, 256, 2, 4)),
    *(Tile(256, 128, 2, 4), Tile(128, 192, 2, 4), Tile(192, 192, 3, 3)),
)
STACKS = (
    *(Tile(64, 64, 1, 13, stack=2), Tile(64, 128, 1, 8, stack=4)),
    *(Tile(64, 128, 1, 8, stack=2), Tile(128, 128, 2, 6, stack=2), Tile(128, 256, 2, 4, stack=2)),
    *(Tile(128, 128, 2, 6, stack=2, side=2), Tile(128, 192, 2, 4, stack=3), Tile(192, 128, 3, 4, side=3)),
    *(Tile(64, 128, 1, 8, stack=4, side=2), Tile(64, 192, 1, 6, stack=4, side=2)),
    *(Tile(128, 128, 2, 6, stack=4, side=2), Tile(128, 192, 2, 4, stack=4, side=2)),
)
SPLITS = (
    *(Tile(64, 64, 1, 8, split=2), Tile(64, 64, 1, 8, split=4)),
    *(Tile(64, 128, 1, 8, split=4), Tile(128, 64, 2, 8, split=4)),
)
MEETING = (
    *(Tile(64, 64, 1, 4, 3), Tile(64, 64, 1, 12), Tile(64, 128, 1, 8), Tile(128, 64, 2, 8), Tile(128, 128, 2, 6)),
    *(Tile(192, 128, 3, 4), Tile(128, 192, 2, 4)),
)
SWAPPED = (
    *(Tile(64, 16, 1, 6, 3), Tile(128, 16, 2, 10), Tile(64, 32, 1, 5, 3), Tile(128, 32, 2, 10)),
    *(Tile(64, 48, 1, 15), Tile(64, 96, 1, 11), Tile(128, 96, 2, 8)),
)
SWAPPED_STACKS = (Tile(64, 96, 1, 11, stack=4),)
FEW_ROWS, MOST_SWAPPED = 32, 96
MANY_SUMS, SHARP = 128 * 96, 2  # of a consumer, that leave no registers for more; how near `max` is to the largest
RESIDENT = {3: 39, 4: 30, 8: 15}  # clusters of so many blocks that 132 multiprocessors hold: groups are not whole
SHALLOW = 256  # a depth below which tiles are computed row by row
SHALLOW_ANY = 192  # a depth up to which warps of any_rows.cu may have parts of the tile
FEW, MOST_ANY = 64, 8e9  # rows or columns, and products of a shape, for which any_rows.cu may be the fastest
PARTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 66, 96, 128)

# Where the search for constants starts, what was fitted to the times of 2026-11-24 for all but any_rows.cu: seconds,
# and seconds for a clock, a byte or 1024 bytes.
START = {
    "launch": 3.51e-06,
    "start": 6.67e-07,  # of a wave: the first stage arrives
    "clock": 6.18e-10,
    "aligned_byte": 8.8e-14,  # from L2, in lines of which TMA takes the whole
    "other_byte": 1.6e-13,
    "other_line": 1.5e-09,  # that a multiprocessor asks for, and that lies in two lines of the L2 cache
    "latency": 1.18e-06,
    "result_byte": 4.1e-11,  # of a multiprocessor
    "direct_byte": 4.77e-11,  # more, where TMA cannot store
    "line_byte": 3e-11,  # more, where registers allow a warp to store no more than one line at a time
    "box": 3e-07,  # of results, that waits until one before it is stored
    "over": 0.3,  # of the shorter of multiplying and storing, where blocks take turns
    "pad": 2.05e-06,
    "pad_byte": 7.81e-13,
    "meet": 4e-06,
    "meet_byte": 2.46e-11,
    "uneven": 1e-06,  # where the parts are no power of two, so that shares of a tile begin within lines
    "split": 5e-08,
    "split_byte": 3.32e-11,
    "cluster": 1.76e-06,
    "memory_byte": 2.25e-13,
    "alone_word": 2.5e-10,  # that a block of any_rows.cu copies
    "any_word": 1.3e-10,  # that all of a multiprocessor copy
    "any_sum": 2e-10,  # of all of them, where warps share the depth
    "spread_sum": 8e-11,  # where they do not
}


def plans(shape: Shape, transposed: str = "NN", multiprocessors: int = 132) -> list[Plan]:
    """Return the plans among which the rule chooses."""
    m, n, k = shape
    found = []
    if m <= MOST_SWAPPED and transposed[0] == "N":
        found += [Plan(tile, parts, swapped=True) for tile in SWAPPED for parts in PARTS if _for_rows(tile, m)]
        found += [Plan(tile, swapped=True) for tile in SWAPPED_STACKS if _for_rows(tile, m)]
    if not found or m > FEW_ROWS:  # TMA is slow where most of a box is outside of its matrix
        found += [Plan(tile) for tile in (*ALONE, *STACKS, *SPLITS)]
        found += [Plan(tile, parts) for tile in MEETING for parts in _parts(tile, m, n, multiprocessors)]
    if any(row % WIDE for row in _lines(shape, transposed)) or min(shape[:2]) <= FEW:
        found += [Plan(tile, split) for tile in ANY_ROWS for split in ANY_SPLITS]
        found += [Plan(tile) for tile in SPREAD if k <= SHALLOW_ANY]
    sensible = [plan for plan in found if _sensible(plan, shape, transposed, multiprocessors)]
    return sensible or [Plan(tile) for tile in ALONE]


def _parts(tile: Tile, m: int, n: int, multiprocessors: int) -> list[int]:
    """Return PARTS from 2 on, and those with which all multiprocessors have as many blocks."""
    count = Plan(tile).tiles(m, n)
    even = {each * multiprocessors // count for each in range(1, tile.blocks + 1)}
    return sorted({*PARTS, *(parts for parts in even if parts <= PARTS[-1])} - {0, 1})


def _for_rows(tile: Tile, m: int) -> bool:
    """Return whether a swapped tile's columns are for m rows: all of them in one of 16 or 32, or in 48 or 96."""
    return tile.bn >= m if m <= FEW_ROWS else tile.bn > FEW_ROWS


def _sensible(plan: Plan, shape: Shape, transposed: str, multiprocessors: int) -> bool:
    """Return whether a plan can compute a product, and leaves neither most of a tile nor most of the GPU empty where
    others do not."""
    m, n, k = shape
    tile, tiles = plan.tile, plan.tiles(m, n)
    rows, columns = (n, m) if plan.swapped else (m, n)
    if plan.refuses(m, n, k, transposed, multiprocessors):
        return False
    if tile.any_rows:
        return 1.0 * m * n * k < MOST_ANY and (plan.parts == 1 or tiles * plan.parts <= 2 * multiprocessors)
    if (tile.bm > 64 and tile.bm > 2 * rows + 62) or (tile.bn > 64 and tile.bn > 2 * columns + 62):
        return False
    if (tile.split > 1 and columns <= tile.bn // 2) or (tile.bm == tile.bn == 192 and k < SHALLOW):
        return False  # half of a box is outside of b; few stages have nothing to wait for beside the results
    if 2.0 * m * n * k > 4e11 and tile.bm * tile.bn < 128 * 128:
        return False
    if tile.cluster == 8 and (tile.bm * tile.stack > 2 * rows or tile.bn * tile.side > 2 * columns):
        return False
    few = tiles * plan.parts < 30 and 2 * plan.parts <= math.ceil(k / DEPTH)
    return not (plan.parts > 1 and few) and (tile.split == 1 or tiles * tile.split <= 2 * multiprocessors)


def _lines(shape: Shape, transposed: str) -> tuple[int, int]:
    """Return elements in a row of a and of b, as they are given."""
    m, n, k = shape
    return m if transposed[0] == "T" else k, k if transposed[1] == "T" else n


def terms(plan: Plan, shape: Shape, transposed: str = "NN", multiprocessors: int = 132) -> tuple[float, ...]:
    """Return what `estimate` reckons with, of a plan for a shape."""
    m, n, k = shape
    tile, tiles = plan.tile, plan.tiles(m, n)
    memory = 2 * (m * k + k * n + m * n)
    if tile.any_rows:
        steps = math.ceil(math.ceil(k / DEPTH) / plan.parts)
        words = steps * (tile.bm * (DEPTH // 2 + 1) + DEPTH * (tile.bn // 2 + 1))
        together = math.ceil(tiles * plan.parts / multiprocessors)
        sent = tile.bm * tile.bn * 4 * (plan.parts - 1) / plan.parts * together
        shares, sums = (plan.parts > 1, sent, plan.parts > 1), tile.bm * tile.bn * together
        spread = sums * tile.spread
        return (*(0.0 for _ in range(17)), *shares, memory, words, words * together, sums - spread, spread)
    clusters = tiles * plan.parts
    blocks = clusters * tile.cluster
    at_once = RESIDENT.get(tile.cluster, 132 // tile.cluster) * multiprocessors // 132
    waves = math.ceil(clusters / max(1, at_once * tile.blocks))
    together = min(tile.blocks, math.ceil(blocks / multiprocessors))
    steps = math.ceil(math.ceil(k / DEPTH) / (plan.parts * tile.split))
    products = tile.bm * tile.bn * DEPTH / PRODUCTS
    lines = tile.bm // 64 * (64 + tile.bn) + tile.bm + tile.bn  # of 128 bytes that wgmma reads, and TMA writes
    clocks = max(products, lines * 2 * DEPTH / SHARED_BANDWIDTH) * together
    at_work = min(blocks, multiprocessors * tile.blocks)
    given = _lines(shape, transposed)
    left, right = (given[1], given[0]) if plan.swapped else given
    loaded = {True: 0.0, False: 0.0}  # lines of a block's step, by whether they are lines of the L2 cache
    for line, rows in ((left, tile.bm / tile.side), (right, tile.bn / tile.stack)):
        loaded[-(-line // WIDE) * WIDE % LINE == 0] += rows
    rows_of_c, columns_of_c = (n, m) if plan.swapped else (m, n)
    direct = n % WIDE > 0
    results = min(tile.bm, rows_of_c) * min(tile.bn, columns_of_c) * 2 * together
    boxes = plan.boxes * (not direct) * tile.bm // 64 // tile.consumers * math.ceil(min(tile.bn, n) / 64)
    padded = [size for line, size in zip(given, (m * k, k * n), strict=True) if line % WIDE]
    return (
        *(waves, steps, clocks),
        *(lines * 2 * DEPTH * at_work for lines in (loaded[True], loaded[False])),
        *((tile.stages - 1) * together, loaded[False] * together),
        *(results, results * direct, results * direct * (tile.bm * tile.bn >= MANY_SUMS * tile.consumers)),
        max(0, boxes - (2 if tile.blocks == 1 else 1)),
        *(tile.blocks > 1, len(padded) > 0, 2 * sum(padded)),
        *(plan.parts > 1, tile.bm * tile.bn * 4 * together * (plan.parts > 1), plan.parts & (plan.parts - 1) != 0),
        *(tile.split > 1, tile.bm * tile.bn * 4 * (tile.split - 1) / tile.split, tile.cluster > 1),
        *(memory, 0, 0, 0, 0),
    )


def estimate(constants: Constants, of: Sequence[Any]) -> Any:
    """Return seconds of a plan from its `terms`, numbers or arrays."""
    waves, steps, clocks, aligned, other, ahead, lines, *rest = of
    (
        results,
        direct,
        line,
        waits,
        several,
        pads,
        padded,
        meets,
        met,
        uneven,
        splits,
        sent,
        clusters,
        memory,
        alone,
        words,
        sums,
        spread,
    ) = rest
    c = constants
    moved = aligned * c["aligned_byte"] + other * c["other_byte"]
    each = clocks * c["clock"], moved, c["latency"] / np.maximum(ahead, 1), lines * c["other_line"]
    work = steps * most_of(SHARP, *each)
    stores = results * c["result_byte"] + direct * c["direct_byte"] + line * c["line_byte"] + waits * c["box"]
    wave = c["start"] + work + stores - several * (1 - c["over"]) * np.minimum(work, stores)
    of_any_rows = np.maximum(alone * c["alone_word"], words * c["any_word"])
    of_any_rows = of_any_rows + sums * c["any_sum"] + spread * c["spread_sum"]
    body = most_of(SHARP, waves * wave, memory * c["memory_byte"], c["start"] * (waves == 0) + of_any_rows)
    fix_up = (
        meets * c["meet"] + met * c["meet_byte"] + uneven * c["uneven"] + splits * c["split"] + sent * c["split_byte"]
    )
    return c["launch"] + pads * c["pad"] + padded * c["pad_byte"] + clusters * c["cluster"] + body + fix_up


RULE = Rule(Path(__file__).parent / "plans.json", Plan, Tile, plans, terms, estimate, START)


def _by_wgmma(shape: Shape, transposed: str = "NN", multiprocessors: int = 132, *, two_levels: bool) -> list[Plan]:
    """Return plans for factors that any_rows.cu does not take; `two_levels`: whose sums fit twice, and no cluster of
    four, whose blocks then wait for each other: 1109 µs at 8192³, pairs 818 (H100, 2026-11-26)."""

    def fits(plan: Plan) -> bool:
        return not plan.tile.any_rows and (not two_levels or (plan.tile.two_levels and plan.tile.side == 1))

    found = plans(shape, transposed, multiprocessors)
    return list(filter(fits, found)) or list(filter(fits, map(Plan, ALONE)))


# By factors: e4m3 takes the time of as many bytes of float16, so that a shape's k is half of theirs.
RULES = {"float16": RULE} | {
    name: dataclasses.replace(RULE, plans=functools.partial(_by_wgmma, two_levels=name == "e4m3"))
    for name in ("bfloat16", "e4m3")
}


def group_of(m: int, n: int, k: int) -> int:
    """Return tiles that blocks run down before the next column: more where the operands are far beyond the L2 cache;
    one where results are most of what is moved, so that rows of C are written in one go."""
    return 1 if k < SHALLOW else 16 if min(m, n, k) >= 6144 else 8
