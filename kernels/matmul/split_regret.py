"""What a choice of parts costs, by the times of step 10 that were recorded: the check of lesson and exercise 04."""

import functools
from collections.abc import Callable, Mapping

import numpy as np

from kernels.matmul.shape_rule import RULE, TILES
from warpcourse.bench.shape_rule import Shape, mean_regret
from warplab.checks import CheckFailed
from warplab.checks.called import called

LEAST_CHOICES = 4  # of a shape that asks for a choice
BLOCKS = {
    (tiles.bm, tiles.bn): tiles.blocks for tiles in TILES if (tiles.tm, tiles.tn) == (8, 8)
}  # on a multiprocessor
Tile = tuple[int, int]  # rows and columns of C


@functools.cache
def times(tile: Tile) -> list[tuple[Shape, Mapping[int, float]]]:
    """Return the shapes that step 10 was timed for with a tile in BLOCKS, each with the µs by parts."""
    found = []
    for row in RULE.rows():
        by_parts = {
            plan.parts: 1e6 * seconds
            for plan, seconds in zip(row.plans, row.seconds, strict=True)
            if (plan.tiles.bm, plan.tiles.bn, plan.tiles.tm, plan.tiles.tn, plan.pad) == (*tile, 8, 8, False)
        }
        if len(by_parts) >= LEAST_CHOICES:
            found.append((row.shape, by_parts))
    return found


def regrets(choose: Callable[..., int], tile: Tile, rows: slice = slice(None)) -> list[float]:
    """Return for each shape how many times as long as with the best choice it takes with that of
    `choose(m, n, k, bm, bn, blocks, choices)`; CheckFailed for what is none of `choices`."""
    found = []
    for (m, n, k), by_parts in times(tile)[rows]:
        choices = list(by_parts)
        arguments = m, n, k, *tile, BLOCKS[tile], choices
        where = f"m = {m}, n = {n}, k = {k}, bm = {tile[0]}, bn = {tile[1]}"
        parts = called(choose, where, *arguments)
        whole = type(parts) is int or isinstance(parts, np.integer)  # no bool, no class that may compare as it likes
        if not whole or parts not in choices:
            raise CheckFailed(
                f"{getattr(choose, '__name__', 'the function')} returns none of the choices.",
                expected=f"one of {choices}",
                got=f"{type(parts).__name__}: {parts!r}"[:200],
                where=where,
                kind="wrong type",
            )
        found.append(by_parts[int(parts)] / min(by_parts.values()))
    return found


def check_split(choose: Callable[..., int], most: float, rows: slice = slice(None)) -> None:
    """Check the mean regret over shapes and tiles, as a share: 0.05 for times 5 % too long; CheckFailed above `most`.

    `choose`: as `regrets` takes it. `rows`: of the shapes of each tile.
    """
    name, found = getattr(choose, "__name__", "the function"), []
    for tile in BLOCKS:
        shapes = [shape for shape, _ in times(tile)[rows]]
        found += [(each, shape, tile) for each, shape in zip(regrets(choose, tile, rows), shapes, strict=True)]
    mean = mean_regret([each for each, *_ in found]) - 1
    if mean > most:
        worst, shape, tile = max(found)
        raise CheckFailed(
            f"What {name} chooses takes too long.",
            expected=f"times {most:.0%} above the best at most, the mean over {len(found)} recorded products",
            got=f"{mean:.1%}",
            where=f"at worst {worst:.2f} times the best: {' × '.join(map(str, shape))}, tiles of {tile[0]} × {tile[1]}",
            kind="wrong result",
        )
    print(f"{name}: right for {len(found)} recorded products, in the mean {mean:.1%} above the best choice.")
